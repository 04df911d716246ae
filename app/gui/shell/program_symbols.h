#pragma once

#include <cstddef>
#include <cstdint>

namespace kvscope::gui {

/// The names of the running program's functions, those of one file alone among them, out of its own file. For signal
/// handlers: after open() nothing is allocated and nothing locked.
class ProgramSymbols {
 public:
    struct Found {
        const char* name = nullptr;  ///< as the linker has it; nullptr: not known
        size_t offset = 0;           ///< of the address in it
    };

    /// Maps the program's file into memory. Where that fails, or the file is stripped, nothing is known.
    void open();
    Found find(const void* address) const;

 private:
    const unsigned char* file_ = nullptr;
    size_t size_ = 0;
    uintptr_t bias_ = 0;  ///< of the addresses in memory to those in the file
    size_t symbols_ = 0;  ///< place in the file
    size_t n_symbols_ = 0;
    size_t names_ = 0;  ///< place in the file
};

}  // namespace kvscope::gui
