#pragma once

#include <imgui.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/session.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_view.h"
#include "app/gui/shell/place_sizes.h"
#include "app/gui/shell/view_guard.h"
#include "app/gui/shell/view_picture.h"
#include "app/gui/shell/window.h"

namespace kvscope::gui {

struct Layout;

/// The views on the screen: which are open, where they stand, and which of them has the keyboard.
class OpenViews {
 public:
    /// @param only the kind of view that fills the window in the layout `view_alone`; empty: there is no such layout
    OpenViews(Window& window, const Session& session, Notices& notices, std::string only);

    const std::vector<std::unique_ptr<OpenView>>& all() const { return views_; }
    /// A further view of a kind, one that a layout has put away where there is one; it opens as a tab beside others.
    OpenView& open(const ViewKind& kind);
    /// A further view, with the state that View::save wrote; nothing where there is no such kind.
    void open(const std::string& kind, const nlohmann::json& state);
    /// Brings the first of its kind to the front, with the keyboard, or opens one; leaves the start cards.
    OpenView& show(const ViewKind& kind);
    /// Brings a view to the front and gives it one of its commands: it may need what is drawn alone.
    void call(const std::string& id, const std::string& command);
    /// Its tab in front, where one of the kind is open, as soon as the places are settled; the keyboard stays where it
    /// is.
    void bring_to_front(const ViewKind& kind);
    /// Starts what the view of this kind is there to do where it has the keyboard; else shows it.
    void start_or_show(const ViewKind& kind);
    /// Shows it alone in the window until `end_alone`; where it is the only view, or a person has brought the others
    /// back, that does nothing.
    void show_alone(const ViewKind& kind);
    void end_alone();
    /// The same, also where a person has maximised a view of this kind.
    void end_alone(const ViewKind& kind);
    /// The view that has, or last had, the keyboard; nullptr where there is none.
    OpenView* focused() const;
    /// Whether one of them has the keyboard now, or there is none that could.
    bool have_keyboard() const;
    /// nullptr where it is no open view's.
    const OpenView* find(const View& view) const;

    /// The views instead of the start cards, although no trace is open.
    void dismiss_start() { start_dismissed_ = true; }
    /// The start cards again, while no trace is open.
    void show_start() { start_dismissed_ = false; }
    bool is_start_dismissed() const { return start_dismissed_; }

    /// The views of a layout in their places, in the next frame. Those that are open, or were put away before, stay as
    /// they are set, with all that was typed into them; others are put away.
    void apply_layout(const std::string& name) { wanted_layout_ = name; }
    bool awaits_layout() const { return !wanted_layout_.empty(); }
    /// The view that has the keyboard, or all but that one; a view that is there to be typed into keeps its text.
    void close_focused();
    void close_others();
    /// The view that has the keyboard alone in the window, from the next frame on; where one is, all as they were.
    void toggle_maximised();
    bool is_maximised() const { return !before_maximised_.is_null(); }
    /// Views with their state and places, those that are put away, and what a later kvscope left among them. While one
    /// is maximised, as they stand when it no longer is.
    nlohmann::json state() const;
    /// Unknown kinds of view and damaged parts are left out.
    /// @param keep_views views that are open stay as they are set; else those alone into which a person has typed: what
    /// the state has typed into the same one is then put away
    void restore(const nlohmann::json& state, bool keep_views = false);

    void begin_frame();
    /// Draws what the views are docked to. @returns whether it built a layout that was waited for
    bool draw_dock_space();
    /// Draws all views. @param picture takes one of the view that it waits for
    void draw(Context& context, ViewPicture& picture);

    /// Counts how often all views were replaced by others, as a workspace does.
    int n_begun() const { return n_begun_; }

    bool has_dock_space() const { return dock_space_ != 0; }
    /// Splitters, tabs and floating views, as a text that changes with them.
    std::string places() const;
    /// For some frames after a layout was built, or views were opened or closed, places change by themselves.
    bool is_settled() const { return frames_to_settle_ == 0; }
    void await_places();

    /// What views have thrown while they were drawn, since the window opened.
    const std::vector<std::string>& failures() const { return guard_.failures(); }

 private:
    void set_state(OpenView& open, const nlohmann::json& state);
    static nlohmann::json state_of(const OpenView& open);
    /// Whether a person has typed or set something in a view that is there for that.
    static bool is_filled_in(const OpenView& open);
    OpenView& add(const ViewKind& kind, int number);
    OpenView& open_new(const ViewKind& kind);
    /// As soon as it is drawn, in front.
    void give_keyboard(OpenView& view);
    /// Brings a view that was just added to the front, as a tab beside others of its kind, else of its place.
    void dock(OpenView& opened) const;
    /// Whether a view that is open or put away has the number.
    bool is_taken(const ViewKind& kind, int number) const;
    /// Takes the first of a kind, or the one of that number, out of views; nullptr where there is none.
    static std::unique_ptr<OpenView> take(std::vector<std::unique_ptr<OpenView>>& views, const ViewKind& kind,
                                          std::optional<int> number = {});
    void put_away(std::vector<std::unique_ptr<OpenView>> views);
    /// Views that a person has closed: those with text are kept, the others go.
    void put_closed_away();
    void draw_one(OpenView& open, Context& context, ViewPicture& picture);
    /// Since a person asks for it, or the maximised view was closed. Before the dock space of the frame.
    void end_maximised_where_due();
    void maximise(const std::string& id);
    void build_layout();
    void fill(const Layout& layout, std::vector<std::unique_ptr<OpenView>>& before);
    /// The order in which tabs were saved: Dear ImGui keeps it for those alone that it has not shown before.
    void note_tab_order();
    void restore_put_away(const nlohmann::json& state);

    Window& window_;
    Notices& notices_;
    std::string only_;
    ViewGuard guard_;
    std::vector<std::unique_ptr<OpenView>> views_;
    std::vector<std::unique_ptr<OpenView>> put_away_;  ///< not in the layout, with what is typed into them
    std::vector<nlohmann::json> views_of_later_;       ///< in the layout, of kinds that this program has not
    std::string focused_;                              ///< id
    std::string focus_in_the_end_;     ///< title of the view that has the keyboard after a layout is built
    nlohmann::json before_maximised_;  ///< state() then; null: no view is
    std::string maximised_;            ///< id
    std::string wanted_maximised_;     ///< id of the view that is maximised, or no longer is, in the next frame
    std::string layout_;               ///< name of the one that was built last; empty: none of ours
    int n_begun_ = 0;
    std::string wanted_layout_;                  ///< built at the next frame, when the dock space is known
    std::map<ImGuiID, int> tab_order_;           ///< by window, as it is restored; empty once places are settled
    std::vector<std::string> in_front_;          ///< ids, of a layout that is restored, until its places are settled
    const ViewKind* wanted_in_front_ = nullptr;  ///< once places are settled; nullptr: none
    std::string alone_next_;                     ///< id of the view that is shown alone once no other is maximised
    bool is_alone_ = false;                      ///< maximised by `show_alone`
    ImGuiID dock_space_ = 0;
    PlaceSizes sizes_;
    int frames_to_settle_ = 0;
    bool start_dismissed_ = false;
};

}  // namespace kvscope::gui
