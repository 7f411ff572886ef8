package spec

import "slices"

// FieldChats is the field of jsonl data that may hold conversations, which are trained on as the base model's chat
// template writes them, or as plain text.
const FieldChats = "messages"

// Chats reports whether a job trains on conversations.
func (j Spec) Chats() bool {
	return slices.ContainsFunc(j.Datasets, func(d Dataset) bool { return d.Format == "jsonl" && d.Field == FieldChats })
}
