#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace kvscope::kernels {

/// 64-byte aligned memory that grows on demand and is kept between calls. Growing discards its contents.
class Workspace {
 public:
    [[nodiscard]] void* reserve(size_t bytes) {
        if (bytes > size_) {
            data_.reset();
            size_ = 0;
            const size_t rounded = (bytes + 4095) / 4096 * 4096;
            data_.reset(std::aligned_alloc(64, rounded));
            if (!data_) throw std::bad_alloc();
            size_ = rounded;
        }
        return data_.get();
    }

 private:
    struct Free {
        void operator()(void* p) const { std::free(p); }  // NOLINT(*-no-malloc): aligned_alloc() allocated it
    };
    std::unique_ptr<void, Free> data_;
    size_t size_ = 0;
};

}  // namespace kvscope::kernels
