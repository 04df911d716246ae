#include "app/program/version.h"

namespace kvscope::program {

const char* version() { return KVSCOPE_VERSION; }
const char* commit() { return "commit " KVSCOPE_COMMIT; }

}  // namespace kvscope::program
