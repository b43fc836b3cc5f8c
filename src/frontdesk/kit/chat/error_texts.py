"""The sentences of errors in chats, by language: each key begins with the code of its error. Pure."""

from collections.abc import Mapping

ERRORS: Mapping[str, str] = {
    "error.denied": "You can't use this assistant. If you think that you should, ask whoever runs it.",
    "error.denied_group": "You can't use this assistant.",
    "error.forbidden": "This caller may not do that.",
    "error.forbidden_group": "You can't do that here.",
    "error.link_required": "Link your account first.",
    "error.link_required_group": "Link your account first, in our direct chat.",
    "error.link_refused": "These accounts can't be linked.",
    "error.link_refused_code": "There is no code to enter here: ask for a link, and open it in your browser.",
    "error.link_expired": "This proof has been used, or has ended. Begin again.",
    "error.link_busy": "The account that issued this code has another question to answer first. Answer it there, and "
    "confirm again.",
    "error.links_busy": "These accounts are being changed at the moment.",
    "error.already_linked": "This account is linked with another one already. Unlink it first.",
    "error.too_many_links": "No more accounts can be linked with this one.",
    "error.code_refused": "This code does not work. Ask for a new one.",
    "error.nothing_to_confirm": "There is nothing to confirm.",
    "error.account_unlinked": "The account was unlinked while this was answered, so that what it asks for can't be "
    "approved.",
    "error.unsupported": "This host is not set up for that.",
    "error.unsupported_links": "This host has nothing to link accounts with.",
    "error.unauthenticated_link": "An anonymous caller has no account to link.",
    "error.unsupported_pause": "The workflow asked for more information, and it was built so that it can't be paused.",
    "error.invalid_request": "The request can't be understood.",
    "error.not_found": "There is no such thing.",
    "error.not_found_approval": "There is no such approval.",
    "error.not_found_question": "This question is not open any more.",
    "error.not_found_session": "There is no such session.",
    "error.conflict": "The request does not fit the present state.",
    "error.session_required": "This channel needs a session, and the request names none.",
    "error.session_required_approval": "A tool needs an approval, and without a session nothing can wait for it.",
    "error.session_required_answer": "The workflow asks for something, and without a session nothing can wait for the "
    "answer.",
    "error.session_busy": "Another turn of this session is still running.",
    "error.session_too_large": "The agent's state in this session is larger than this host stores; begin a new "
    "session.",
    "error.run_exists": "A run with this id exists already.",
    "error.answer_needed": "The session waits for an answer to {names}.",
    "error.answer_needed_before": "An answer to {name} is needed before the approval.",
    "error.approval_answered": "This approval was answered before.",
    "error.approval_answered_workflow": "The session does not wait for this approval.",
    "error.approval_changed": "The call is no longer the one that was asked about: its arguments, or its tool, have "
    "changed. Ask again.",
    "error.approval_expired": "This answer comes too late.",
    "error.approval_id_invalid": "The agent asked for an approval under an id that can't be used.",
    "error.checkpoint_lost": "What the session stood at is gone.",
    "error.checkpoint_lost_version": "What the session stood at was saved by another version of the workflow.",
    "error.hook_failed": "A hook of this host refused the request.",
    "error.file_too_large": "The file is larger than this host keeps.",
    "error.file_too_large_limit": "The file has more than {limit} bytes, which are not kept here.",
    "error.files_full": "There is no room for more files of this owner.",
    "error.files_full_limit": "The files would take more than {limit} bytes together; older ones are dropped in time.",
    "error.too_many_requests": "Too many requests at once.",
    "error.too_many_requests_yours": "Too many of your runs are in the background.",
    "error.too_many_requests_all": "Too many runs wait in the background.",
    "error.too_many_requests_attempts": "Too many attempts. Try again later.",
    "error.internal_error": "Something went wrong on our side.",
    "error.internal_error_run": "The run failed.",
    "error.target_failed": "The agent failed while it answered.",
    "error.target_failed_pause": "The workflow asked for more information, and its pause could not be saved.",
    "error.not_storable": "The agent left something behind that can't be stored as JSON.",
    "error.not_storable_background": "What is asked for can't be stored as JSON, so that it can't run in the "
    "background.",
    "error.interrupted": "The run was interrupted: the process that worked on it ended.",
    "error.unavailable": "The service can't answer at the moment.",
    "error.unavailable_access": "Who may come in can't be found out at the moment.",
    "error.unavailable_read": "The session's checkpoint can't be read at the moment.",
    "error.unavailable_write": "The session's checkpoint can't be written at the moment.",
    "error.store_unavailable": "The storage of this service can't be reached at the moment; nothing that was confirmed "
    "is lost.",
    "error.newer_record": "This was written by a newer version of the service, which this part of it can't read yet.",
    "error.newer_record_format": "This was written by a newer version of the service, in a format that this part of it "
    "can't read yet.",
}
"""Every sentence in English."""
