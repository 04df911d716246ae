#include "app/program/version.h"

namespace kvscope::program {

const char* version() { return KVSCOPE_VERSION; }
const char* commit() { return KVSCOPE_COMMIT; }
const char* commit_date() { return KVSCOPE_COMMIT_DATE; }

}  // namespace kvscope::program
