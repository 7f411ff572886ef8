package answer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
)

// Recent is how many blocks the height in a receipt is away from that of its holder, at most: a receipt of an older
// block can be accused for a shorter time.
const Recent = 200

// ErrOther is for a receipt of another answer than that of its holder.
var ErrOther = errors.New("answer: the receipt is of another answer")

// Held is what the holder of an answer knows of it without the model.
type Held struct {
	Chain             string
	Model             uint64
	Weights           canon.Digest
	Provider          string
	Temperature, TopP uint32 // millionths
	Seed              uint64
	Tokens            []int32 // of the prompt; none: they are not known
	Prompt, Made      int     // tokens, as the provider counts them, without that by which the model ended the answer
	Most              int     // tokens that were asked for; 0: as many as there is room for
	Cut               bool    // it may have fewer, although the model has not ended it
	Height            int64
}

// Compare compares a receipt with the knowledge of its holder. The error wraps ErrOther: it accuses no such answer.
func (r Receipt) Compare(h Held) error {
	made := len(r.Answer)
	if r.Stopped {
		made--
	}
	switch {
	case r.Chain != h.Chain || r.Model != h.Model || r.Weights != h.Weights || r.Provider != h.Provider:
		return fmt.Errorf("%w: of model %d with weights %s of %.80s on %.80s", ErrOther, r.Model, r.Weights.Short(),
			r.Provider, r.Chain)
	case r.Seed != h.Seed || r.First != 0 || r.Temperature != h.Temperature || r.TopP != h.TopP:
		return fmt.Errorf("%w: of another seed, temperature or top_p", ErrOther)
	case len(r.Prompt) != h.Prompt || len(h.Tokens) > 0 && !slices.Equal(r.Prompt, h.Tokens) || made != h.Made:
		return fmt.Errorf("%w: of %d tokens after %d, and the answer has %d after %d", ErrOther, made, len(r.Prompt), h.Made,
			h.Prompt)
	case !r.Stopped && !h.Cut || h.Most > 0 && int(r.Asked) > h.Most:
		return fmt.Errorf("%w: %d tokens were asked for, and it names %d", ErrOther, h.Most, r.Asked)
	case r.Height < h.Height-Recent || r.Height > h.Height+Recent:
		return fmt.Errorf("%w: of block %d, and this is block %d", ErrOther, r.Height, h.Height)
	}
	return nil
}
