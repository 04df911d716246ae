#pragma once

namespace kvscope::program {

/// Makes fontconfig use kvscope's configuration and fonts if the system has no configuration. Call it before
/// fontconfig.
void use_packaged_fonts();

}  // namespace kvscope::program
