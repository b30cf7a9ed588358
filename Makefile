# A thin front: each target installs what is missing, configures, builds and runs. The build itself is CMake's.
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
DIGITS = doc/examples/digits

.PHONY: all deps configure test valgrind demo format clean

all: configure
	cmake --build $(BUILD) -j $(JOBS)

deps:
	@.ci/deps

configure: deps
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DQDQ_BUILD_TESTS=ON > $(BUILD)/configure.log 2>&1 \
		|| { cat $(BUILD)/configure.log; exit 1; }

test: all
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)

valgrind:
	@.ci/deps valgrind
	cmake --preset valgrind > /dev/null
	cmake --build --preset valgrind -j $(JOBS)
	ctest --preset valgrind -j $(JOBS)

demo: configure
	cmake --build $(BUILD) -j $(JOBS) --target digits_demo
	@$(BUILD)/bin/digits_demo $(DIGITS)

format: deps
	clang-format -i $$(find backend patterns kernels graph_tests doc -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp')

clean:
	rm -rf $(BUILD) build-*
