// Package dataset reads the data of jobs: for training, and before that for reports on its content, its errors, and
// its number of tokens and steps. It keeps nothing and trains nothing.
package dataset

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

// File is one file of data, and how it is read.
type File struct {
	Name   string // for people, and for its ending
	Path   string // to open it by
	Format string
	Field  string
	Key    string // of the job file that names it; "": none does

	base    string // folder of the model that conversations are written for; "": as plain text
	weight  float64
	answers bool // what the assistant says in them is to be learnt, and nothing else
}

// ErrFormat is returned for a file whose name does not tell its format.
var ErrFormat = errors.New("the name of the file does not tell its format")

// endings are the formats by the ends of names.
var endings = map[string]string{
	".txt": data.Text, ".text": data.Text, ".md": data.Text, ".go": data.Text, ".py": data.Text,
	".jsonl": data.JSONL, ".ndjson": data.JSONL, ".csv": data.CSV, ".parquet": data.Parquet, ".bin": data.LLMC,
}

// Named are files by themselves. A format that is "" follows from the name.
func Named(paths []string, format, field string) ([]File, error) {
	files := make([]File, len(paths))
	for i, path := range paths {
		f := File{Name: filepath.ToSlash(path), Path: path, Format: format, Field: field}
		if format == "" {
			end := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
			if f.Format = endings[filepath.Ext(end)]; f.Format == "" {
				return nil, fmt.Errorf("%w: %s", ErrFormat, path)
			}
		}
		files[i] = f
	}
	return files, nil
}

// Of are the files of a job. The error is a *job.ErrorList.
func Of(j *job.Job) ([]File, error) {
	found, err := j.Files()
	if err != nil {
		return nil, err
	}
	files := make([]File, len(found))
	for i, f := range found {
		d := j.Datasets[f.Dataset]
		files[i] = File{Name: f.Name, Path: f.Path, Format: d.Format, Field: d.Field,
			weight: d.Weight, answers: !j.Training.TrainOnInputs, Key: fmt.Sprintf("datasets.%d.path", f.Dataset)}
		if j.Model.BaseModel != "" {
			files[i].base = j.BaseModelPath()
		}
	}
	return files, nil
}

// loaded is a source that is in memory.
func loaded(s data.Source, err error) (data.Source, error) {
	if err == nil && s.Load != nil {
		s.Data, err = s.Load()
		s.Load = nil
	}
	return s, err
}

// source is a file that is read whenever it is needed. The error is of one that cannot be opened.
func (f File) source() (data.Source, error) {
	opened, err := os.Open(f.Path)
	if err == nil {
		err = opened.Close()
	}
	s := data.Source{Format: f.Format, Field: f.Field, Name: f.Name, Weight: f.weight,
		Load: func() ([]byte, error) { return os.ReadFile(f.Path) }}
	if f.Field == job.FieldChats && f.Format == data.JSONL {
		write, wrong := serve.Answers(f.base)
		if !f.answers {
			all, err := serve.Transcripts(f.base)
			wrong = err
			write = func(talk []openai.Message) (text string, _ []data.Span, err error) {
				text, err = all(talk)
				return text, nil, err
			}
		}
		s.Render = func(raw []byte) (d data.Document, err error) {
			talk, err := openai.Conversation(raw)
			if err = errors.Join(wrong, err); err == nil {
				d.Text, d.Said, err = write(talk)
			}
			return d, err
		}
	}
	return s, err
}

// Sources reads the files of a job. The error is a *job.ErrorList.
func Sources(j *job.Job) ([]data.Source, error) {
	files, err := Of(j)
	if err != nil {
		return nil, err
	}
	sources := make([]data.Source, len(files))
	for i, f := range files {
		if sources[i], err = f.source(); err != nil {
			return nil, problem(j, f.Key, job.CodeNoData, "cannot read "+f.Path, err, "check the file's permissions")
		}
	}
	return sources, nil
}

// InSteps is a job with its length in inner steps. One whose length is given in epochs has its data tokenized for that;
// any other is returned as it is. The error is a *job.ErrorList.
func InSteps(j *job.Job) (*job.Job, error) {
	if j.Training.NumEpochs == 0 {
		return j, nil
	}
	sources, err := Sources(j)
	if err != nil {
		return nil, err
	}
	tok, err := Tokenizer(j, sources)
	if err != nil {
		return nil, err
	}
	c, err := Corpus(j, sources, tok)
	if err != nil {
		return nil, err
	}
	return j.InSteps(float64(sequences(c, j)) / float64(j.Training.GlobalBatchSize))
}

// sequences is how many training examples one pass over the data has.
func sequences(c *data.Corpus, j *job.Job) int { return max(0, c.Train.Len()-1) / j.SequenceLen }

// Tokenizer is that of a job, trained on its sources if it asks for that. The error is a *job.ErrorList.
func Tokenizer(j *job.Job, sources []data.Source) (*tokenizer.Tokenizer, error) {
	switch t := j.Model.Tokenizer; t.Kind {
	case job.TokenizerFile:
		text, err := os.ReadFile(j.TokenizerPath())
		if err != nil {
			return nil, problem(j, "model.tokenizer", job.CodeFileNotFound, "cannot read "+j.TokenizerPath(), err,
				"check the path")
		}
		tok, err := tokenizer.Parse(text)
		if err != nil {
			return nil, problem(j, "model.tokenizer", job.CodeBadValue, "cannot use "+j.TokenizerPath(), err,
				"give a tokenizer.json with parts that docs/models.md lists")
		}
		return tok, nil
	case job.TrainBPE:
		var unread error
		tok, err := tokenizer.TrainBPE(documents(sources, &unread), t.VocabSize)
		if unread != nil {
			return nil, unusable(j, unread)
		}
		if err != nil {
			return nil, problem(j, "model.tokenizer", job.CodeBadValue, "the tokenizer cannot be trained", err,
				"ask for a smaller vocab_size or give more text")
		}
		return tok, nil
	default:
		return tokenizer.Bytes(), nil
	}
}

// documents gives those of all sources, one source after the other, up to one that cannot be read.
func documents(sources []data.Source, unread *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range sources {
			all, err := data.Documents(s)
			if err != nil {
				*unread = err
				return
			}
			for _, d := range all {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// Corpus is the data of a job in tokens. The error is a *job.ErrorList.
func Corpus(j *job.Job, sources []data.Source, tok *tokenizer.Tokenizer) (*data.Corpus, error) {
	choice := data.Choice{Said: !j.Training.TrainOnInputs}
	if !j.SamplePacking {
		choice.Pad = j.SequenceLen
	}
	c, err := data.BuildChosen(sources, tok, j.ValSetSize, choice)
	if err != nil {
		return nil, unusable(j, err)
	}
	return c, nil
}

func unusable(j *job.Job, err error) error {
	return problem(j, "datasets", job.CodeNoData, "the data cannot be used", err,
		"starling data validate says everything that is wrong with it")
}

func problem(j *job.Job, path, code, what string, why error, fix string) error {
	return &job.ErrorList{Errors: []*job.Error{j.Problem(path, code, what, why.Error(), fix)}}
}
