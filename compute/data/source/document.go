package source

// Document is a text that is trained on.
type Document struct {
	Text string
	// parts of the text that are to be learnt, ascending: the other parts are read and not predicted; nil: all of it
	Learnt []TextRange
}

// TextRange is bytes From up to To of a text.
type TextRange struct{ From, To int }
