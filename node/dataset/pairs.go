package dataset

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/paired"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/padding"
)

// Pairs are the examples of a job that gives vectors to texts.
type Pairs struct {
	// a row for each: a number of the anchor and one of the positive, equal for equal texts; then the first Length tokens
	// of the anchor, filled up with Pad; then those of the positive
	Corpus    *data.Corpus
	Length    int
	Tokenizer *tokenizer.Tokenizer
	Pad       int
}

// Tokens is how many tokens an example has.
func (p *Pairs) Tokens() int { return 2 + 2*p.Length }

// PairsOf reads the pairs of texts of a job. The error is a *problem.ErrorList.
func PairsOf(j *job.Job) (*Pairs, error) {
	files, err := Of(j)
	if err != nil {
		return nil, err
	}
	sources, err := Sources(j)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(sources)
	for i, s := range sources {
		if s.Format == source.CSV { // of which a tokenizer is trained on one column
			s.Field = files[i].second
			all = append(all, s)
		}
	}
	p := &Pairs{Length: j.SequenceLen}
	if p.Tokenizer, err = Tokenizer(j, all); err != nil {
		return nil, err
	}
	if p.Pad, err = fillerOf(j, p.Tokenizer); err != nil {
		return nil, err
	}
	var rows [][]uint32
	anchors, positives := numbers{}, numbers{}
	for i, s := range sources {
		err := paired.Each(s, files[i].second, func(x paired.Pair) error {
			if len(rows) >= mostTokens/p.Tokens() {
				return fmt.Errorf("%w: at most %d pairs of texts of %d tokens are read", ErrTexts, len(rows), p.Length)
			}
			first, second := p.row(x.Anchor), p.row(x.Positive)
			row := append([]uint32{anchors.of(first), positives.of(second)}, first...)
			rows = append(rows, append(row, second...))
			return nil
		})
		if err != nil {
			return nil, j.Refuse(files[i].Key, problem.NoData, "the data cannot be used", err, fmt.Sprintf(
				"give pairs of texts as {%q: ..., %q: ...}, one a line, or as csv with columns of these names; field and "+
					"positive_field say others", paired.DefaultAnchor, paired.DefaultPositive))
		}
	}
	if len(positives) < 2 || len(anchors) < 2 {
		return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used",
			fmt.Errorf("%w: there are %d anchors and %d positives, of which the first %d tokens count", ErrTexts, len(anchors),
				len(positives), p.Length), "give pairs of different texts, or raise sequence_len")
	}
	vocab := max(256, p.Tokenizer.VocabSize(), p.Pad+1, len(anchors), len(positives))
	p.Corpus, err = data.Rows(rows, uint32(vocab), j.Seed, j.ValSetSize)
	return p, err
}

func (p *Pairs) row(text string) []uint32 {
	return padding.Row(p.Tokenizer.EncodeText(text), p.Length, p.Pad)
}

// numbers are those of texts, as rows of tokens, in the order in which they came.
type numbers map[string]uint32

func (n numbers) of(row []uint32) uint32 {
	var key []byte
	for _, id := range row {
		key = binary.LittleEndian.AppendUint32(key, id)
	}
	if at, seen := n[string(key)]; seen {
		return at
	}
	at := uint32(len(n))
	n[string(key)] = at
	return at
}
