#pragma once

#include "kernels/team.h"

namespace kvscope::engine::testing {

using kernels::Threads;

}  // namespace kvscope::engine::testing
