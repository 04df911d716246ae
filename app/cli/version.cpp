#include "app/cli/version.h"

namespace kvscope::cli {

const char* version() { return KVSCOPE_VERSION; }

}  // namespace kvscope::cli
