package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/padding"
	"github.com/starling-network/starling/compute/model/textclass"
)

// Texts are the examples of a job that classifies texts.
type Texts struct {
	Corpus    *data.Corpus // a row for each: its class, then its first sequence_len tokens, filled up with Pad
	Labels    []string     // of the classes, ascending
	Tokenizer *tokenizer.Tokenizer
	Pad       int
}

// mostTokens limits the tokens of all examples, which are in memory while they are put into their order.
const mostTokens = 1 << 28

// ErrTexts is wrapped by reasons why texts cannot be classified together.
var ErrTexts = errors.New("the texts do not make examples")

// TextsOf reads the texts of a job. The error is a *problem.ErrorList.
func TextsOf(j *job.Job) (*Texts, error) {
	files, err := Of(j)
	if err != nil {
		return nil, err
	}
	sources, err := Sources(j)
	if err != nil {
		return nil, err
	}
	t := &Texts{}
	if t.Tokenizer, err = Tokenizer(j, sources); err != nil {
		return nil, err
	}
	if t.Pad, err = paddingOf(j, t.Tokenizer); err != nil {
		return nil, err
	}
	var rows [][]uint32
	var names []string // of the classes of rows
	for i, s := range sources {
		err := labelled.Each(s, files[i].label, func(x labelled.Example) error {
			if len(rows) >= mostTokens/(1+j.SequenceLen) {
				return fmt.Errorf("%w: at most %d texts of %d tokens are read", ErrTexts, len(rows), j.SequenceLen)
			}
			row := padding.Row(t.Tokenizer.EncodeText(x.Text), j.SequenceLen, t.Pad)
			rows, names = append(rows, slices.Insert(row, 0, 0)), append(names, x.Label)
			return nil
		})
		if err != nil {
			return nil, keyProblem(j, files[i].Key, problem.NoData, "the data cannot be used", err, fmt.Sprintf(
				"give texts with their classes as {%q: ..., %q: ...}, one a line, or as csv with columns of these names; "+
					"field and label_field say others", source.DefaultField, labelled.DefaultLabel))
		}
	}
	if err := t.together(rows, names, j); err != nil {
		return nil, keyProblem(j, "datasets", problem.NoData, "the data cannot be used", err,
			fmt.Sprintf("give texts of 2 to %d classes", textclass.MaxClasses))
	}
	return t, nil
}

// together makes the examples of rows with the names of their classes.
func (t *Texts) together(rows [][]uint32, names []string, j *job.Job) (err error) {
	t.Labels = slices.Compact(slices.Sorted(slices.Values(names)))
	switch k := len(t.Labels); {
	case k == 0:
		return fmt.Errorf("%w: there is none", ErrTexts)
	case k == 1:
		return fmt.Errorf("%w: there is no second class besides %q", ErrTexts, t.Labels)
	case k > textclass.MaxClasses:
		return fmt.Errorf("%w: they have %d classes", ErrTexts, k)
	}
	for i, name := range names {
		class, _ := slices.BinarySearch(t.Labels, name)
		rows[i][0] = uint32(class)
	}
	vocab := max(256, t.Tokenizer.VocabSize(), t.Pad+1, len(t.Labels))
	t.Corpus, err = data.Rows(rows, uint32(vocab), j.Seed, j.ValSetSize)
	return err
}

// paddingOf is the token that fills up the texts of a job: that of its base model, or the one with which it ends a text,
// or the one that ends a document for the tokenizer, or else the first number that no token of it has. The error is a
// *problem.ErrorList.
func paddingOf(j *job.Job, tok *tokenizer.Tokenizer) (int, error) {
	if j.Model.BaseModel != "" {
		const file = "config.json"
		var config struct {
			Vocab int  `json:"vocab_size"`
			Pad   *int `json:"pad_token_id"`
			End   any  `json:"eos_token_id"` // one, or a list of them
		}
		raw, err := os.ReadFile(filepath.Join(j.BaseModelPath(), file))
		if err == nil {
			err = json.Unmarshal(raw, &config)
		}
		if err != nil {
			return 0, keyProblem(j, "model.base_model", problem.BadValue, "the base model cannot be used", err,
				"give a model folder in Hugging Face form")
		}
		if config.Pad != nil && *config.Pad >= 0 && *config.Pad < config.Vocab {
			return *config.Pad, nil
		}
		if list, ok := config.End.([]any); ok && len(list) > 0 {
			config.End = list[0]
		}
		if end, ok := config.End.(float64); ok && end >= 0 && end < float64(config.Vocab) {
			return int(end), nil
		}
	}
	if end, ok := tok.EndOfText(); ok {
		return int(end), nil
	}
	return tok.VocabSize(), nil
}

// inspectLabels adds the first fault in the classes of a CSV file of texts to its report.
func inspectLabels(f File, s source.File, r Report) Report {
	err := labelled.Each(s, f.label, func(labelled.Example) error { return nil })
	if at := (*source.Error)(nil); len(r.Faults)+r.MoreFaults == 0 && errors.As(err, &at) {
		r.Faults = append(r.Faults, Fault{File: at.Name, Line: at.Line, Why: at.Err.Error()})
	}
	return r
}
