package terminal

// FiguresOnly marks, as its Annotations, a command whose answer has no name: numbers or text that no other command
// takes.
var FiguresOnly = map[string]string{AnswerKind: "figures"}

// AnswerKind is the key of FiguresOnly.
const AnswerKind = "answer"

// Figures is the answer that is one thing and has no name.
func Figures(whole any) Answer { return One(whole, "") }
