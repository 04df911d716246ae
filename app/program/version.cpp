#include "app/program/version.h"

namespace kvscope::program {

const char* version() { return KVSCOPE_VERSION; }

}  // namespace kvscope::program
