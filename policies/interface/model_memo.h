#pragma once

#include "policies/interface/memo.h"

namespace kvscope::policies {

/// Values that depend on a model's weights alone and live as long as the model.
class ModelMemo : public Memo {};

}  // namespace kvscope::policies
