#pragma once

#include "policies/interface/memo.h"

namespace kvscope::policies {

/// What policies find out of a model's weights alone: kept as long as the model, shared by all prompts and runs.
class ModelMemo : public Memo {};

}  // namespace kvscope::policies
