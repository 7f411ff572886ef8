package dataset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/paired"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/padding"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/node/dataset/fault"
	"github.com/starling-network/starling/node/dataset/filler"
)

// Texts are the examples of a job that classifies or scores texts.
type Texts struct {
	// of TextsOf a row for each text: its class, then its first sequence_len tokens, filled up with Pad; of PreferencesOf
	// a row for each pair
	Corpus    *data.Corpus
	Labels    []string // of the classes, ascending; a reward model has one
	Tokenizer *tokenizer.Tokenizer
	Pad       int
}

// mostTokens limits the tokens of all examples, which are in memory while they are put into their order.
const mostTokens = 1 << 28

// ErrTexts is wrapped by reasons why texts cannot be classified together.
var ErrTexts = errors.New("the texts do not make examples")

// opened returns the files of a job, the examples without their rows, and the sources of the files. The error is a
// *problem.ErrorList.
func opened(j *job.Job) (files []File, sources []source.File, t *Texts, err error) {
	if files, err = Of(j); err != nil {
		return nil, nil, nil, err
	}
	if sources, err = Sources(j); err != nil {
		return nil, nil, nil, err
	}
	t = &Texts{}
	if t.Tokenizer, err = Tokenizer(j, sources); err != nil {
		return nil, nil, nil, err
	}
	t.Pad, err = fillerOf(j, t.Tokenizer)
	return files, sources, t, err
}

// TextsOf reads the texts of a job. The error is a *problem.ErrorList.
func TextsOf(j *job.Job) (*Texts, error) {
	files, sources, t, err := opened(j)
	if err != nil {
		return nil, err
	}
	var rows [][]uint32
	var names []string // of the classes of rows
	for i, s := range sources {
		err := labelled.Each(s, files[i].second, func(x labelled.Example) error {
			if len(rows) >= mostTokens/(1+j.SequenceLen) {
				return fmt.Errorf("%w: at most %d texts of %d tokens are read", ErrTexts, len(rows), j.SequenceLen)
			}
			row := padding.Row(t.Tokenizer.EncodeText(x.Text), j.SequenceLen, t.Pad)
			rows, names = append(rows, slices.Insert(row, 0, 0)), append(names, x.Label)
			return nil
		})
		if err != nil {
			return nil, j.Refuse(files[i].Key, problem.NoData, "the data cannot be used", err, fmt.Sprintf(
				"give texts with their classes as {%q: ..., %q: ...}, one a line, or as csv with columns of these names; "+
					"field and label_field say others", source.DefaultField, labelled.DefaultLabel))
		}
	}
	if err := t.together(rows, names, j); err != nil {
		return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used", err,
			fmt.Sprintf("give texts of 2 to %d classes", textclass.MaxClasses))
	}
	return t, nil
}

// together makes the examples of rows with the names of their classes.
func (t *Texts) together(rows [][]uint32, names []string, j *job.Job) (err error) {
	if t.Labels, err = labelled.Classes(names, j.Federated.Classes); err != nil {
		return fmt.Errorf("%w: %w", ErrTexts, err)
	}
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

// fillerOf is filler.Token of a job. The error is a *problem.ErrorList.
func fillerOf(j *job.Job, tok *tokenizer.Tokenizer) (int, error) {
	base := ""
	if j.Model.BaseModel != "" {
		base = j.BaseModelPath()
	}
	token, err := filler.Token(base, tok)
	if err != nil {
		return 0, j.Refuse("model.base_model", problem.BadValue, "the base model cannot be used", err,
			"give a model folder in Hugging Face form")
	}
	return token, nil
}

// inspectFields adds the first fault in a CSV file of texts with classes, or of pairs of texts, to its report.
func inspectFields(f File, s source.File, r Report) Report {
	var err error
	if f.task == spec.TaskEmbed {
		err = paired.Each(s, f.second, func(paired.Pair) error { return nil })
	} else {
		err = labelled.Each(s, f.second, func(labelled.Example) error { return nil })
	}
	if at := (*source.Error)(nil); len(r.Faults)+r.MoreFaults == 0 && errors.As(err, &at) {
		r.Faults = append(r.Faults, fault.Fault{File: at.Name, Line: at.Line, Why: at.Err.Error()})
	}
	return r
}
