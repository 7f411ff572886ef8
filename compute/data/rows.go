package data

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/data/shuffle"
)

// ErrRows is returned by Rows.
var ErrRows = errors.New("data: no examples, or examples of other lengths or with other tokens")

// Rows makes a corpus of examples that are rows of tokens of one length, each token below vocab. They are put into an
// order drawn from the seed, so that those held out are like the others: the last valFraction of them, rounded down,
// are for validation. A window of a row's length is an example, with the first token of the next one; the last row of
// either part is thus in no window.
func Rows(rows [][]uint32, vocab uint32, seed uint64, valFraction float64) (*Corpus, error) {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil, ErrRows
	}
	if !(valFraction >= 0 && valFraction < 1) {
		return nil, fmt.Errorf("%w, not %v", ErrFraction, valFraction)
	}
	all, length := Tokens{width: width(vocab)}, len(rows[0])
	order := shuffle.New(seed, 0, uint64(len(rows)))
	for i := range rows {
		row := rows[order.At(uint64(i))]
		if len(row) != length {
			return nil, fmt.Errorf("%w: one of %d tokens, one of %d", ErrRows, length, len(row))
		}
		for _, id := range row {
			if id >= vocab {
				return nil, fmt.Errorf("%w: token %d, and there are %d", ErrRows, id, vocab)
			}
		}
		all = all.append(row)
	}
	return newCorpus(vocab, all, int(float64(len(rows))*valFraction)*length), nil
}
