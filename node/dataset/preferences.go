package dataset

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model/padding"
)

// rewardLabel is the name of the only class of a reward model, whose score is the reward: that which transformers
// gives to a class without a name.
const rewardLabel = "LABEL_0"

// PreferencesOf reads the pairs of answers of a job that trains a reward model. A row has the first sequence_len tokens
// of the prompt with the preferred answer, filled up with Pad, then those of the prompt with the other answer. A pair
// whose answers differ only after these tokens is left out. The error is a *problem.ErrorList.
func PreferencesOf(j *job.Job) (*Texts, error) {
	files, sources, p, err := opened(j)
	if err != nil {
		return nil, err
	}
	p.Labels = []string{rewardLabel}
	var rows [][]uint32
	pairs := 0
	for i, s := range sources {
		err := s.EachObject(func(o map[string]json.RawMessage) error {
			if pairs++; pairs > mostTokens/(2*j.SequenceLen) {
				return fmt.Errorf("%w: at most %d pairs of texts of %d tokens are read", ErrTexts, pairs-1, j.SequenceLen)
			}
			docs, err := s.Examples(o)
			if err != nil {
				return err
			}
			row := func(text string) []uint32 { return padding.Row(p.Tokenizer.EncodeText(text), j.SequenceLen, p.Pad) }
			preferred, other := row(docs[0].Text), row(docs[1].Text)
			if !slices.Equal(preferred, other) {
				rows = append(rows, append(preferred, other...))
			}
			return nil
		})
		if err != nil {
			return nil, j.Refuse(files[i].Key, problem.NoData, "the data cannot be used", err,
				`give pairs of answers as {"prompt": ..., "chosen": ..., "rejected": ...}, one a line`)
		}
	}
	if len(rows) == 0 {
		return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used",
			fmt.Errorf("%w: of %d pairs of answers none differs in the first %d tokens of its texts", ErrTexts, pairs,
				j.SequenceLen), "give pairs of different answers, or raise sequence_len")
	}
	p.Corpus, err = data.Rows(rows, uint32(max(256, p.Tokenizer.VocabSize(), p.Pad+1)), j.Seed, j.ValSetSize)
	return p, err
}
