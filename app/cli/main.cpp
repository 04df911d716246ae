#include <cstdio>
#include <cstdlib>

#include "app/cli/program.h"

int main(int argc, char** argv) {
    int status = kvscope::cli::run_program(argc, argv);
    if (const bool is_cut_off = std::fflush(stdout) != 0 || std::ferror(stdout) != 0; is_cut_off && status == 0) {
        std::fputs("kvscope: standard output cannot be written\n", stderr);
        status = 1;
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // Skip destructors: destroying libtorch's operator tables would take a fifth of a short command's time.
    std::fflush(nullptr);
    std::quick_exit(status);
#endif
    return status;
}
