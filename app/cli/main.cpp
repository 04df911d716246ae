#include "app/cli/program.h"

int main(int argc, char** argv) { return kvscope::cli::run_program(argc, argv); }
