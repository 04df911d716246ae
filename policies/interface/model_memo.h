#pragma once

#include "policies/interface/memo.h"

namespace kvscope::policies {

/// Values that policies derive from a model's weights alone. They live as long as the model.
class ModelMemo : public Memo {};

}  // namespace kvscope::policies
