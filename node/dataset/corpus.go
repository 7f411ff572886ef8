package dataset

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/node/memory"
)

// Corpus is the data of a job in tokens. Where they are many, they lie in a file without a name in the cache of this
// user, and not in memory. The corpus is not used once it is closed. watch may be nil; an error of it is returned. Any
// other error is a *problem.ErrorList.
func Corpus(j *job.Job, sources []source.File, tok *tokenizer.Tokenizer,
	watch data.Watch) (*data.Corpus, io.Closer, error) {
	choice := data.Choice{Learnt: !j.Training.TrainOnInputs}
	if !j.SamplePacking {
		choice.Pad = j.SequenceLen
	}
	switch j.Task {
	case spec.TaskDPO:
		choice.Group = 2
	case spec.TaskGRPO:
		choice.Group, choice.Answer, choice.Compared = 1, j.Rollout.MaxTokens, j.Reward.Ruled()
		choice.Room = j.Rollout.Room()
	}
	spool := Spool()
	c, err := corpus(j, spool, sources, tok, choice, watch)
	if err != nil {
		_ = spool.Close()
		return nil, nil, err
	}
	return c, spool, nil
}

// Spool takes the tokens of a corpus: a few stay in memory, more lie in the cache of this user.
func Spool() *memory.Spool {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return memory.NewSpool(filepath.Join(dir, "starling", "tokens"))
}

func corpus(j *job.Job, spool *memory.Spool, sources []source.File, tok *tokenizer.Tokenizer, choice data.Choice,
	watch data.Watch) (*data.Corpus, error) {
	var ended error
	s, err := data.Write(spool, 0, sources, tok, choice, func(p data.Progress) error {
		if watch != nil {
			ended = watch(p)
		}
		return ended
	})
	var raw []byte
	if err == nil {
		raw, err = spool.Bytes(int(s.Bytes()))
	}
	if err == nil {
		var c *data.Corpus
		if c, err = s.Corpus(raw, j.ValSetSize, spool.Rest); err == nil {
			return c, nil
		}
	}
	switch {
	case ended != nil:
		return nil, ended
	case full(err):
		return nil, j.Refuse("datasets", problem.DiskFull, "the disk has no room for the tokens of the data", err,
			"make room in "+spool.Dir()+", or set XDG_CACHE_HOME to a folder on another disk")
	}
	return nil, unusable(j, err)
}

// Tokenizing is a line about the progress of tokenizing after some time.
func Tokenizing(p data.Progress, after time.Duration) string {
	mb := float64(p.Bytes) / 1e6
	return fmt.Sprintf("tokenizing: %.0f MB, %.1f million tokens, %.1f MB/s", mb, float64(p.Tokens)/1e6,
		mb/after.Seconds())
}

// full reports whether a disk has no room.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// InSteps is a job with its length in inner steps. One whose length is given in epochs has its data tokenized for that;
// any other is returned as it is. The error is a *problem.ErrorList, or that of watch, which is as of Corpus.
func InSteps(j *job.Job, watch data.Watch) (*job.Job, error) {
	if j.Training.NumEpochs == 0 {
		return j, nil
	}
	if !j.ReadsText() {
		c, tokens, err := corpusOf(j)
		if err != nil {
			return nil, err
		}
		return j.InSteps(float64(c.Windows(tokens)) / float64(j.Training.GlobalBatchSize))
	}
	sources, err := Sources(j)
	if err != nil {
		return nil, err
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
	return j.InSteps(float64(c.Windows(j.ExampleTokens())) / float64(j.Training.GlobalBatchSize))
}
