#pragma once

#include <imgui.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/layout/open_view.h"
#include "app/gui/layout/place_sizes.h"
#include "app/gui/layout/view_picture.h"
#include "app/gui/session/session.h"
#include "app/gui/window/notices.h"
#include "app/gui/window/window.h"
#include "common/json.h"

namespace kvscope::gui {

struct Layout;

/// Manages the open views, their places and the keyboard focus.
class OpenViews {
 public:
    /// @param only kind of the only view in the layout `view_alone`; empty: that layout does not exist
    OpenViews(Window& window, const Session& session, Notices& notices, std::string only);

    [[nodiscard]] const std::vector<std::unique_ptr<OpenView>>& all() const { return views_; }
    /// Opens another view of this kind as a tab. Reuses a closed view if one was kept.
    OpenView& open(const ViewKind& kind);
    /// Opens another view with a state from View::save. First restores all views if one is maximized. Does nothing if
    /// the kind is unknown.
    void open(const std::string& kind, const nlohmann::json& state);
    /// Gives the keyboard to the first view of this kind. Opens a view if there is none. Hides the start cards. First
    /// restores all views if a view of another kind is maximized.
    /// @param state settings to load into the view; null: none
    void show(const ViewKind& kind, const nlohmann::json& state = nullptr);
    /// Restores all views if one is maximized, and then opens another view of this kind.
    void open_after_restoring(const ViewKind& kind);
    /// Whether all views are restored before a view is shown.
    [[nodiscard]] bool await_restoring() const { return after_restoring_ != nullptr; }
    /// Brings a view to the front and calls one of its commands. A hidden view cannot execute commands.
    void run_command(const std::string& id, const std::string& command);
    /// Brings the tab of this kind to the front once the layout has settled. The keyboard focus does not change.
    void bring_to_front(const ViewKind& kind);
    /// Calls View::start if a view of this kind has the keyboard. Otherwise shows a view of this kind.
    void start_or_show(const ViewKind& kind);
    /// Maximizes a view until end_alone(). Does nothing if the view is the only one or the user restored the others.
    void show_alone(const ViewKind& kind);
    void end_alone();
    void end_alone(const ViewKind& kind);
    /// Returns the view that has or last had the keyboard, or nullptr if there is none.
    [[nodiscard]] OpenView* focused() const;
    [[nodiscard]] bool have_keyboard() const;
    [[nodiscard]] const OpenView* find(const View& view) const;

    void dismiss_start() { start_dismissed_ = true; }
    void show_start() { start_dismissed_ = false; }
    [[nodiscard]] bool is_start_dismissed() const { return start_dismissed_; }

    /// Applies a layout in the next frame. Its views keep their settings and text. Other views are closed but kept.
    void apply_layout(const std::string& name) { wanted_layout_ = name; }
    [[nodiscard]] bool awaits_layout() const { return !wanted_layout_.empty(); }
    /// Closes the focused view. close_others() closes all other views. Closed views with text are kept for reopening.
    void close_focused();
    void close_others();
    /// Maximizes the focused view in the next frame, or restores all views if one is maximized.
    void toggle_maximised();
    [[nodiscard]] bool is_maximised() const { return !before_maximised_.is_null(); }
    /// Returns the state of all views and places, including closed views and entries that a newer kvscope wrote.
    /// While a view is maximized, returns the state before maximizing.
    [[nodiscard]] nlohmann::json state() const;
    /// Restores a state and skips its unknown or damaged parts. With `keep_views`, all open views keep their settings.
    /// Otherwise, only views with typed text keep their settings, and their saved settings are kept in closed views.
    void restore(const nlohmann::json& state, bool keep_views = false);

    void begin_frame();
    /// Draws the dock space for the views. Returns whether a requested layout was built in this frame.
    [[nodiscard]] bool draw_dock_space();
    void draw(Context& context, ViewPicture& picture);

    /// Number of times that all views were replaced, for example by a workspace.
    [[nodiscard]] int n_begun() const { return n_begun_; }

    [[nodiscard]] bool has_dock_space() const { return dock_space_ != 0; }
    /// Returns a text that changes whenever splitters, tabs or floating views change.
    [[nodiscard]] std::string places() const;
    /// Whether the places have settled. They move for a few frames after the set of views changes.
    [[nodiscard]] bool is_settled() const { return frames_to_settle_ == 0; }
    void await_places();

    [[nodiscard]] const std::vector<std::string>& failures() const { return guard_.failures(); }

 private:
    void set_state(OpenView& open, const nlohmann::json& state);
    [[nodiscard]] static nlohmann::json state_of(const OpenView& open);
    [[nodiscard]] static bool is_filled_in(const OpenView& open);
    [[nodiscard]] OpenView& add(const ViewKind& kind, int number);
    [[nodiscard]] OpenView& open_new(const ViewKind& kind);
    void end_maximised();  ///< restores all views in the next frame, if one is maximized
    [[nodiscard]] OpenView* first_of(const ViewKind& kind) const;  ///< nullptr if there is none
    [[nodiscard]] OpenView& show_now(const ViewKind& kind);
    /// Restores all views if one is maximized, and calls `act` once their places have settled. Otherwise calls it now.
    void restore_first(std::function<void()> act);
    void give_keyboard(OpenView& view);
    void dock(OpenView& opened) const;
    [[nodiscard]] bool is_taken(const ViewKind& kind, int number) const;
    [[nodiscard]] static std::unique_ptr<OpenView> take(std::vector<std::unique_ptr<OpenView>>& views,
                                                        const ViewKind& kind, std::optional<int> number = {});
    void put_away(std::vector<std::unique_ptr<OpenView>> views);
    void put_closed_away();
    void draw_one(OpenView& open, Context& context, ViewPicture& picture);
    /// Restores all views if requested or if the maximized view was closed. Call before draw_dock_space().
    void end_maximised_where_due();
    void maximise(const std::string& id);
    void build_layout();
    void fill(const Layout& layout, std::vector<std::unique_ptr<OpenView>>& before);
    /// Sorts the tabs in their saved order, because Dear ImGui restores the order only for new tabs.
    void note_tab_order();
    void restore_put_away(const nlohmann::json& state);

    Window& window_;
    Notices& notices_;
    std::string only_;
    ViewGuard guard_;
    std::vector<std::unique_ptr<OpenView>> views_;
    std::vector<std::unique_ptr<OpenView>> put_away_;  ///< closed views that are kept with their text
    std::vector<nlohmann::json> views_of_later_;       ///< saved views of kinds that this version does not know
    std::string focused_;                              ///< id of the view with the keyboard
    std::string focus_in_the_end_;     ///< title of the view that gets the keyboard after a layout is built
    nlohmann::json before_maximised_;  ///< state() before maximizing; null: no view is maximized
    std::string maximised_;            ///< id of the maximized view
    std::string wanted_maximised_;     ///< id of the view to maximize or restore in the next frame
    std::string layout_;               ///< name of the built-in layout that was last built; empty: another layout
    int n_begun_ = 0;
    std::string wanted_layout_;                  ///< name of the layout to build in the next frame
    std::map<ImGuiID, int> tab_order_;           ///< restored tab order by window; empty after the places have settled
    std::vector<std::string> in_front_;          ///< ids of the views to bring to the front while a layout is restored
    const ViewKind* wanted_in_front_ = nullptr;  ///< kind of view to bring to the front later; nullptr: none
    std::string alone_next_;                     ///< id of the view to maximize once no other is maximized
    bool is_alone_ = false;                      ///< whether a view is maximized by `show_alone`
    std::function<void()> after_restoring_;      ///< shows a view after all views are restored; may be empty
    ImGuiID dock_space_ = 0;
    PlaceSizes sizes_;
    int frames_to_settle_ = 0;
    bool start_dismissed_ = false;
};

}  // namespace kvscope::gui
