/* A test fixture that runs a piece of code under every level of instruction set that the host has (the reference first), and
 * buffers that end where memory ends: reading or writing behind them is a fault. */
#ifndef LEVEL_SWEEP_H
#define LEVEL_SWEEP_H

#include "kernels/isa/isa.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

class LevelSweep : public testing::Test {
  protected:
    LevelSweep() : before_(qk_isa_cap()) {}
    ~LevelSweep() override { qk_isa_set_cap(before_); }
    template <class F> void each_level(F f) {
        for (int isa = 0; isa < QK_ISA_COUNT; isa++)
            if (qk_isa_host_has(qk_isa(isa))) {
                qk_isa_set_cap(qk_isa(isa));
                SCOPED_TRACE(qk_isa_name(qk_isa(isa)));
                f();
            }
    }

  private:
    qk_isa before_;
};

class EndedBytes {
  public:
    explicit EndedBytes(size_t bytes) : bytes_(bytes) {
        const size_t page = size_t(sysconf(_SC_PAGESIZE));
        span_ = (bytes + page - 1) / page * page + 2 * page;
        base_ =
            static_cast<uint8_t *>(mmap(nullptr, span_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base_, page, PROT_NONE);
        mprotect(base_ + span_ - page, page, PROT_NONE);
        data_ = base_ + span_ - page - bytes;
    }
    ~EndedBytes() { munmap(base_, span_); }
    EndedBytes(const EndedBytes &) = delete;
    EndedBytes &operator=(const EndedBytes &) = delete;
    uint8_t *data() { return data_; }
    uint8_t &operator[](size_t i) { return data_[i]; }
    template <class T> T *as() { return reinterpret_cast<T *>(data_); }
    void fill(uint8_t value) {
        if (bytes_ != 0) memset(data_, value, bytes_);
    }

  private:
    size_t bytes_, span_;
    uint8_t *base_, *data_;
};

#endif
