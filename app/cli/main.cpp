#include <cstdio>
#include <cstdlib>

#include "app/cli/program.h"

int main(int argc, char** argv) {
    const int status = kvscope::cli::run_program(argc, argv);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // Taking libtorch's tables of operators apart is a fifth of what a short command takes.
    std::fflush(nullptr);
    std::quick_exit(status);
#endif
    return status;
}
