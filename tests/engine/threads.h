#pragma once

#include "kernels/threads/team.h"

namespace kvscope::engine::testing {

using kernels::Threads;

}  // namespace kvscope::engine::testing
