/* A test fixture that runs a piece of code under every level of instruction set that the host has (the reference first), and
 * buffers that end where memory ends: reading or writing behind them is a fault. */
#ifndef LEVEL_SWEEP_H
#define LEVEL_SWEEP_H

#include "guard_pages.h"
#include "kernels/isa/isa.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>

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
    explicit EndedBytes(size_t bytes) : bytes_(bytes) {}
    uint8_t *data() { return bytes_.at_end(); }
    uint8_t &operator[](size_t i) { return data()[i]; }
    template <class T> T *as() { return reinterpret_cast<T *>(data()); }
    void fill(uint8_t value) {
        if (bytes_.size() != 0) memset(data(), value, bytes_.size());
    }

  private:
    GuardedBytes bytes_;
};

#endif
