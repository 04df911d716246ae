#pragma once

#include "app/gui/shell/current_workspace.h"
#include "app/gui/shell/file_opener.h"
#include "app/gui/view/file_dialog.h"

namespace kvscope::gui {

// What the File and Run menus and the start cards ask for. The dialog calls the parameters back in a later frame: they
// stay as long as it does.

void ask_for_trace(FileDialog& dialog, FileOpener& opener);
/// The trace in focus is closed once another one is open in its place.
void ask_for_trace_instead(FileDialog& dialog, FileOpener& opener, Session& session, Autosave& autosave);
/// The start cards are left when it is answered.
void ask_for_model(FileDialog& dialog, FileOpener& opener, OpenViews& views);
/// A workspace that was saved becomes one of the recent files.
void ask_for_workspace(FileDialog& dialog, CurrentWorkspace& workspace, const Session& session, Notices& notices,
                       Settings& settings);

/// With a notice; the start page comes back where no trace is left.
void close_trace(const Document& document, Session& session, OpenViews& views, Notices& notices);

/// Exports the figure or table of a view. @param open nullptr: there is none, which becomes a notice
void ask_for_export(FileDialog& dialog, const OpenView* open, Session& session, Notices& notices);

}  // namespace kvscope::gui
