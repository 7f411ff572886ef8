// Package dataset reads the data of jobs: for training, and before that for reports on its content, its errors, and
// its number of tokens and steps. It keeps nothing and trains nothing.
package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
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
	answers bool     // what the assistant says in them is to be learnt, and nothing else
	task    string   // of the job: what the objects of a file are
	second  string   // the field of the class of a text, or of the text that belongs to it; "": there is none
	rewards []string // fields that answers are rewarded by; none: the completion
}

// ErrFormat is returned for a file whose name does not tell its format.
var ErrFormat = errors.New("the name of the file does not tell its format")

// endings are the formats by the ends of names.
var endings = map[string]string{
	".txt": source.Text, ".text": source.Text, ".md": source.Text, ".go": source.Text, ".py": source.Text,
	".jsonl": source.JSONL, ".ndjson": source.JSONL, ".csv": source.CSV, ".parquet": source.Parquet, ".bin": source.LLMC,
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

// Of are the files of a job. The error is a *problem.ErrorList.
func Of(j *job.Job) ([]File, error) {
	found, err := j.Files()
	if err != nil {
		return nil, err
	}
	files := make([]File, len(found))
	for i, f := range found {
		d := j.Datasets[f.Dataset]
		files[i] = File{Name: f.Name, Path: f.Path, Format: d.Format, Field: d.Field,
			weight: d.Weight, answers: !j.Training.TrainOnInputs, task: j.Task,
			Key: fmt.Sprintf("datasets.%d.path", f.Dataset)}
		files[i].rewards = d.RewardFields
		if j.EncodesText() {
			files[i].second = cmp.Or(d.PositiveField, d.LabelField)
		}
		if j.Model.BaseModel != "" {
			files[i].base = j.BaseModelPath()
		}
	}
	return files, nil
}

// source is a file that is read whenever it is needed. The error is of one that cannot be opened.
func (f File) source() (source.File, error) {
	opened, err := os.Open(f.Path)
	if err == nil {
		err = opened.Close()
	}
	return source.File{Format: f.Format, Field: f.Field, Name: f.Name, Weight: f.weight,
		Open: func() (io.ReadCloser, error) { return os.Open(f.Path) }, Examples: f.examples()}, err
}

// Sources reads the files of a job. The error is a *problem.ErrorList.
func Sources(j *job.Job) ([]source.File, error) {
	files, err := Of(j)
	if err != nil {
		return nil, err
	}
	sources := make([]source.File, len(files))
	for i, f := range files {
		if sources[i], err = f.source(); err != nil {
			return nil, j.Refuse(f.Key, problem.NoData, "cannot read "+f.Path, err, "check the file's permissions")
		}
	}
	return sources, nil
}

// Tokenizer is that of a job, trained on its sources if it asks for that. The error is a *problem.ErrorList.
func Tokenizer(j *job.Job, sources []source.File) (*tokenizer.Tokenizer, error) {
	switch t := j.Model.Tokenizer; t.Kind {
	case spec.TokenizerFile:
		text, err := os.ReadFile(j.TokenizerPath())
		if err != nil {
			return nil, j.Refuse("model.tokenizer", problem.FileNotFound, "cannot read "+j.TokenizerPath(), err,
				"check the path")
		}
		tok, err := tokenizer.Parse(text)
		if err != nil {
			return nil, j.Refuse("model.tokenizer", problem.BadValue, "cannot use "+j.TokenizerPath(), err,
				"give a tokenizer.json with parts that docs/models.md lists")
		}
		return tok, nil
	case spec.TrainBPE:
		var unread error
		tok, err := tokenizer.TrainBPE(documents(sources, &unread), t.VocabSize)
		if unread != nil {
			return nil, unusable(j, unread)
		}
		if err != nil {
			return nil, j.Refuse("model.tokenizer", problem.BadValue, "the tokenizer cannot be trained", err,
				"ask for a smaller vocab_size or give more text")
		}
		return tok, nil
	default:
		return tokenizer.Bytes(), nil
	}
}

// documents gives the texts of all sources, one source after the other, up to one that cannot be read. A long text is
// given in parts, which end between words.
func documents(sources []source.File, unread *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range sources {
			for d, err := range s.Documents(1<<20, func(text string) int { return pattern.GPT2.Cut(text, false) }) {
				if err != nil {
					*unread = err
					return
				}
				if !yield(d.Text) {
					return
				}
			}
		}
	}
}

func unusable(j *job.Job, err error) error {
	fix := "starling data validate says everything that is wrong with it"
	switch {
	case errors.Is(err, data.ErrUnlearnt):
		fix = "raise sequence_len, or shorten the prompt"
	case errors.Is(err, data.ErrAnswer):
		fix = "raise sequence_len or rollout.max_tokens, or shorten the example; an example has one answer"
	}
	return j.Refuse("datasets", problem.NoData, "the data cannot be used", err, fix)
}
