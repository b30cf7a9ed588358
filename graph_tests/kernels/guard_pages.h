// An array that ends at (or begins behind) a page that may not be touched: what reads one byte too far dies.
#ifndef GUARD_PAGES_H
#define GUARD_PAGES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

class GuardedBytes {
  public:
    explicit GuardedBytes(size_t n) : n_(n) {
        const size_t page = size_t(sysconf(_SC_PAGESIZE));
        room_ = (n + page - 1) / page * page;
        total_ = room_ + 2 * page;
        void *p = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        base_ = p == MAP_FAILED ? nullptr : static_cast<uint8_t *>(p);
        if (base_ == nullptr) return;
        (void)mprotect(base_, page, PROT_NONE);
        (void)mprotect(base_ + page + room_, page, PROT_NONE);
        begin_ = base_ + page;
    }
    ~GuardedBytes() {
        if (base_ != nullptr) munmap(base_, total_);
    }
    GuardedBytes(const GuardedBytes &) = delete;
    GuardedBytes &operator=(const GuardedBytes &) = delete;
    // The n bytes that end at the guard; those that begin behind the other one.
    uint8_t *at_end() const { return begin_ + room_ - n_; }
    uint8_t *at_begin() const { return begin_; }
    size_t size() const { return n_; }

  private:
    size_t n_, room_ = 0, total_ = 0;
    uint8_t *base_ = nullptr, *begin_ = nullptr;
};

#endif
