package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/node/dataset/fault"
	"github.com/starling-network/starling/role/bundle"
)

// Report is what is in a file, and what is wrong with it.
type Report struct {
	Name       string        `json:"name"`
	Format     string        `json:"format"`
	Field      string        `json:"field,omitempty"` // that the documents are in
	Bytes      int64         `json:"bytes"`           // of the file
	SHA256     string        `json:"sha256"`          // of the file
	Unpacked   int64         `json:"unpacked_bytes"`
	Documents  int           `json:"documents"` // that are not empty
	Empty      int           `json:"empty"`
	Text       int64         `json:"text_bytes"` // of all documents
	Longest    int           `json:"longest_bytes"`
	Repeated   int           `json:"repeated"`         // documents that are the same as one before them
	NotUTF8    int           `json:"not_utf8"`         // documents that are no valid UTF-8
	Tokens     int           `json:"tokens,omitempty"` // of a file that holds them
	Largest    uint32        `json:"largest_token,omitempty"`
	Beginning  string        `json:"beginning,omitempty"` // of the first document
	Fields     []Field       `json:"fields,omitempty"`
	Faults     []fault.Fault `json:"faults"`
	MoreFaults int           `json:"more_faults,omitempty"` // that the list leaves out
}

// Field is a field of the objects of a jsonl file, or a column of a csv or parquet file.
type Field struct {
	Name  string `json:"name"`
	Texts int    `json:"texts,omitempty"` // objects in which it is a text
	Of    int    `json:"objects,omitempty"`
}

// Inspect reads files, one after another, to their ends. Of each, at most so many faults are listed.
func Inspect(ctx context.Context, files []File, faults int) ([]Report, error) {
	reports := make([]Report, 0, len(files))
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := f.source()
		if err != nil {
			return nil, err
		}
		r, err := inspect(s, faults)
		if err == nil && f.Format == spec.Images {
			r, err = inspectImage(f, r)
		}
		if err == nil && f.second != "" && f.Format == source.CSV {
			r = inspectFields(f, s, r)
		}
		if err == nil && f.task == spec.TaskGraph && f.Format == source.CSV {
			r = inspectRows(s, r)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func inspect(s source.File, faults int) (Report, error) {
	size, sum, err := digest(s)
	if err != nil {
		return Report{}, err
	}
	p := source.NewProfile(s, faults)
	r := Report{
		Name: s.Name, Format: s.Format, Bytes: size, SHA256: sum, Unpacked: p.Bytes,
		Documents: p.Documents, Empty: p.Empty, Text: p.Text, Longest: p.Longest, Repeated: p.Repeated, NotUTF8: p.NotUTF8,
		Tokens: p.Tokens, Largest: p.Largest, Beginning: p.Beginning, Faults: []fault.Fault{}, MoreFaults: p.MoreFaults,
	}
	if s.Format == source.JSONL || s.Format == source.CSV || s.Format == source.Parquet {
		if r.Field = s.Field; r.Field == "" {
			r.Field = source.DefaultField
		}
	}
	for _, f := range p.Fields {
		r.Fields = append(r.Fields, Field(f))
	}
	for _, f := range p.Faults {
		r.Faults = append(r.Faults, fault.Fault{File: f.Name, Line: f.Line, Why: f.Err.Error()})
	}
	return r, nil
}

// digest reads a file for its size and its digest.
func digest(s source.File) (size int64, sum string, err error) {
	f, err := s.Open()
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// inspectImage reports on an image: its text is the name of its class.
func inspectImage(f File, r Report) (Report, error) {
	r.Documents, r.Beginning, r.Faults, r.MoreFaults = 1, "", []fault.Fault{}, 0
	raw, err := os.ReadFile(f.Path)
	if err != nil {
		return r, err
	}
	some, err := f.pictures(raw)
	if err != nil {
		r.Faults = append(r.Faults, fault.Fault{File: f.Name, Why: err.Error()})
		return r, nil
	}
	r.Beginning, r.Text, r.Longest = some[0].Label, int64(len(some[0].Label)), len(some[0].Label)
	return r, nil
}

// Stats are the size of a job's data, in tokens and steps.
type Stats struct {
	Job            string  `json:"job"`
	Files          int     `json:"files"`
	Bytes          int64   `json:"bytes"` // of the files
	Documents      int     `json:"documents"`
	Text           int64   `json:"text_bytes"`
	Vocab          int     `json:"vocab_size"`
	TrainTokens    int     `json:"train_tokens"`
	ValTokens      int     `json:"val_tokens"`
	BytesPerToken  float64 `json:"bytes_per_token,omitempty"` // of the text; 0: there is none
	Sequences      int     `json:"sequences"`                 // of one pass over the training tokens
	StepSequences  int     `json:"sequences_per_step"`
	EpochSteps     float64 `json:"steps_per_epoch"` // inner steps of one pass
	Steps          int     `json:"steps"`           // of the job
	Epochs         float64 `json:"epochs"`          // passes of the job
	Shards         int     `json:"shards"`          // in which the tokens are published
	ShardBytes     int64   `json:"shard_bytes"`     // of all of them
	Digest         string  `json:"digest"`          // of the manifest: it names the data in the job's work specification
	TooShort       bool    `json:"too_short"`       // not one sequence
	SequenceLength int     `json:"sequence_len"`
}

// Count tokenizes the data of a job. The error is a *problem.ErrorList, or that of watch, which is as of Corpus.
func Count(ctx context.Context, j *job.Job, watch data.Watch) (*Stats, error) {
	sources, err := Sources(j)
	if err != nil {
		return nil, err
	}
	s := &Stats{Job: j.Name, Files: len(sources), SequenceLength: j.SequenceLen,
		StepSequences: j.Training.GlobalBatchSize, Steps: j.Training.MaxSteps}
	for _, f := range sources {
		r, err := inspect(f, 0)
		if err != nil {
			return nil, unusable(j, err)
		}
		s.Bytes, s.Documents, s.Text = s.Bytes+r.Bytes, s.Documents+r.Documents, s.Text+r.Text
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !j.ReadsText() {
		c, tokens, err := corpusOf(j)
		if err != nil {
			return nil, err
		}
		s.SequenceLength, s.Documents = tokens, (c.Train.Len()+c.Val.Len())/tokens
		s.count(c, 0, int(c.Vocab))
		return s, nil
	}
	tok, err := Tokenizer(j, sources)
	if err != nil {
		return nil, err
	}
	c, held, err := Corpus(j, sources, tok, watch)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	s.SequenceLength = j.ExampleTokens()
	s.count(c, s.Text, tok.VocabSize())
	s.SequenceLength = j.SequenceLen
	return s, nil
}

// count counts the tokens of a corpus with the given number of bytes of text, and the examples of SequenceLength.
func (s *Stats) count(c *data.Corpus, text int64, vocab int) {
	m := c.Manifest(bundle.ShardTokens)
	s.Vocab, s.TrainTokens, s.ValTokens = vocab, c.Train.Len(), c.Val.Len()
	s.Shards, s.Digest = len(m.Shards), m.Digest().String()
	for i := range m.Shards {
		s.ShardBytes += m.ShardBytes(i)
	}
	if all := s.TrainTokens + s.ValTokens; text > 0 {
		s.BytesPerToken = float64(text) / float64(all)
	}
	if s.TooShort = s.TrainTokens <= s.SequenceLength; s.TooShort {
		return
	}
	s.Sequences = c.Windows(s.SequenceLength)
	s.EpochSteps = float64(s.Sequences) / float64(s.StepSequences)
	s.Epochs = float64(s.Steps) / s.EpochSteps
}

// Verdict is everything that is wrong with files.
type Verdict struct {
	Valid      bool          `json:"valid"`
	Files      int           `json:"files"`
	Documents  int           `json:"documents"`
	Faults     []fault.Fault `json:"faults"`
	MoreFaults int           `json:"more_faults,omitempty"`
}

// Judge sums reports up.
func Judge(reports []Report) Verdict {
	v := Verdict{Files: len(reports), Faults: []fault.Fault{}}
	for _, r := range reports {
		v.Documents, v.MoreFaults = v.Documents+r.Documents, v.MoreFaults+r.MoreFaults
		v.Faults = append(v.Faults, r.Faults...)
	}
	v.Valid = len(v.Faults)+v.MoreFaults == 0
	return v
}
