package arena

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/model/exampleloss"
	modelfolder "github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/hidden"
	"github.com/starling-network/starling/protocol/arena/ladder"
)

// Score is what a host shows about a model while a contest is under way.
type Score struct {
	Loss    float64 // nats a token: of the model if it is the best, and of the best one before if not
	Best    bool
	Queries uint64 // models that were scored
}

// ScoreModel computes the loss of the model in a folder on a hidden set, and gives it a score by the ladder that lies
// next to the file of the set.
func ScoreModel(ctx context.Context, set, model string, threads int, progress func(done int)) (s Score, _ error) {
	raw, err := os.ReadFile(set)
	if err != nil {
		return s, onDisk(err)
	}
	examples, err := hidden.Decode(raw)
	if err != nil {
		return s, onDisk(err)
	}
	if _, err := findModel(model, nil); err != nil {
		return s, err
	}
	unfit := func(err error) error {
		return &Error{Code: BadFolder, What: "the folder is of no model that can enter", Err: err,
			Fix: "give a model with the vocabulary and the context of the contest"}
	}
	m, err := modelfolder.Read(os.DirFS(model))
	if err != nil {
		return s, unfit(err)
	}
	if has, most := m.Config.VocabSize(), (arena.Terms{Vocab: examples.Vocab}).MaxVocab(); has > most {
		return s, unfit(fmt.Errorf("a vocabulary of %d tokens, at most %d", has, most))
	}
	losses, err := exampleloss.Measure(ctx, m.Config, m.Tensors, examples.Tokens(), threads, progress)
	if errors.Is(err, exampleloss.ErrExamples) {
		return s, unfit(err)
	}
	if err != nil {
		return s, err
	}
	path := set + ".ladder"
	var l ladder.Ladder
	raw, err = os.ReadFile(path)
	if err == nil {
		l, err = ladder.Decode(raw)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, onDisk(err)
	}
	l, score, best, err := l.Score(losses)
	if err != nil {
		return s, onDisk(err)
	}
	return Score{float64(score) / arena.Unit, best, l.Queries}, onDisk(folder.WriteFile(path, canon.MustMarshal(l)))
}
