#pragma once

#include <cstddef>
#include <cstdint>

namespace kvscope::gui {

/// Symbol table of the running program, with static functions. After open(), it neither allocates nor locks, so that
/// signal handlers can use it.
class ProgramSymbols {
 public:
    struct Found {
        const char* name = nullptr;  ///< mangled name; nullptr: unknown
        size_t offset = 0;           ///< distance of the address from the start of the function, bytes
    };

    /// Maps the executable into memory. If this fails or the file is stripped, find() finds nothing.
    void open();
    [[nodiscard]] Found find(const void* address) const;

 private:
    const unsigned char* file_ = nullptr;
    size_t size_ = 0;
    uintptr_t bias_ = 0;  ///< address in memory minus address in the file
    size_t symbols_ = 0;  ///< offset in the file
    size_t n_symbols_ = 0;
    size_t names_ = 0;  ///< offset in the file
};

}  // namespace kvscope::gui
