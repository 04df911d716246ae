#pragma once

#include "app/gui/saved/current_workspace.h"
#include "app/gui/saved/file_opener.h"
#include "app/gui/view/file_dialog.h"

namespace kvscope::gui {

// File dialogs of the menus and the start cards. Their answers arrive in a later frame, so all arguments must outlive
// the dialog.

void ask_for_trace(FileDialog& dialog, FileOpener& opener);
void ask_for_replacement_trace(FileDialog& dialog, FileOpener& opener, Session& session, Autosave& autosave);
/// Asks for a model. Hides the start cards after the user has chosen one.
void ask_for_model(FileDialog& dialog, FileOpener& opener, OpenViews& views);
void ask_where_to_save_workspace(FileDialog& dialog, CurrentWorkspace& workspace, const Session& session,
                                 Notices& notices, Settings& settings);

/// Closes a trace with a notice. Shows the start cards if no trace is left.
void close_trace(const Document& document, Session& session, OpenViews& views, Notices& notices);

/// Asks where to export the figure or table of a view. Shows a notice if `open` is nullptr.
void ask_where_to_export(FileDialog& dialog, const OpenView* open, Session& session, Notices& notices);

}  // namespace kvscope::gui
