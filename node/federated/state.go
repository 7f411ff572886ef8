package federated

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/scaffold"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/rundir"
)

// Files of the folder of a coordinator.
const (
	FileState      = "federated.json" // the job, the owners and the round under way
	FileCheckpoint = "checkpoint.safetensors"
	FileRounds     = "rounds.jsonl"
	FileReport     = "report.json"
	fileFirst      = "first.json" // the loss of the model before the first round
)

// state is what a coordinator keeps besides the checkpoint.
type state struct {
	Job    canon.Digest `json:"job"`
	Owners []string     `json:"owners"` // names, in hexadecimal
	Begun  int64        `json:"begun"`  // the last round in which owners shared secrets: it is not begun again; -1: none
}

// ErrOtherJob is returned for a folder of another job.
var ErrOtherJob = errors.New("the folder holds a federated run of another job")

// readState is the state of a job in a folder.
func readState(dir string, job canon.Digest) (s state, err error) {
	err = folder.ReadJSON(filepath.Join(dir, FileState), &s)
	if errors.Is(err, os.ErrNotExist) {
		return state{Job: job, Begun: -1}, nil
	}
	if err == nil && s.Job != job {
		err = fmt.Errorf("%w: %s", ErrOtherJob, dir)
	}
	return s, err
}

// tensorNames are the names of the tensors of a checkpoint in its file.
func tensorNames(c *train.Checkpoint) (names []string) {
	for _, n := range c.Names {
		names = append(names, train.Param+n)
	}
	for k := range c.Outer {
		for _, n := range c.Names {
			names = append(names, train.Outer(k)+n)
		}
	}
	return names
}

// metaRound is the entry of a checkpoint's file with the number of rounds that it is after.
const metaRound = "round"

// Of control variates: the prefix of the names of their tensors, and the entry with their first round.
const (
	variatePrefix = "variates/"
	metaSince     = "since"
)

// SaveCheckpoint writes the checkpoint of a folder.
func SaveCheckpoint(dir string, c *train.Checkpoint) error {
	return writeCheckpoint(dir, c, variates{})
}

// LoadCheckpoint reads it, or returns the first one.
func LoadCheckpoint(dir string, first *train.Checkpoint) (*train.Checkpoint, error) {
	c, _, err := readCheckpoint(dir, first, false)
	return c, err
}

func writeCheckpoint(dir string, c *train.Checkpoint, v variates) error {
	all, names := slices.Concat(c.Tensors(), v.sum), tensorNames(c)
	meta := map[string]string{metaRound: fmt.Sprint(c.Round)}
	if v.sum != nil {
		meta[metaSince] = fmt.Sprint(v.since)
		for _, n := range c.Names {
			names = append(names, variatePrefix+n)
		}
	}
	shapes := make([]tensor.Shape, len(all))
	for i, t := range all {
		shapes[i] = t.Shape
	}
	return folder.WriteFileBy(filepath.Join(dir, FileCheckpoint), func(w io.Writer) error {
		return safetensors.EncodeEach(w, names, shapes, meta,
			func(i int) (*tensor.Tensor, error) { return all[i], nil })
	})
}

// readCheckpoint is the checkpoint of a folder, with control variates if the job has some, or the first one, whose
// tensors it takes the shapes of.
func readCheckpoint(dir string, first *train.Checkpoint, steered bool) (c *train.Checkpoint, v variates, err error) {
	if steered {
		v.sum = scaffold.Zeros(first.Params)
	}
	b, err := os.ReadFile(filepath.Join(dir, FileCheckpoint))
	if errors.Is(err, os.ErrNotExist) {
		return first, v, nil
	}
	if err != nil {
		return nil, v, err
	}
	f, err := safetensors.Open(b)
	if err != nil {
		return nil, v, err
	}
	number := func(key string) uint32 {
		n, wrong := strconv.ParseUint(f.Meta[key], 10, 32)
		if wrong != nil {
			err = fmt.Errorf("%s: %s: %w", FileCheckpoint, key, wrong)
		}
		return uint32(n)
	}
	read := func(name string, like *tensor.Tensor) *tensor.Tensor {
		t, wrong := f.Tensor(name)
		if wrong == nil && !t.Shape.Equal(like.Shape) {
			wrong = fmt.Errorf("%s is %s, wanted %s", name, t.Shape, like.Shape)
		}
		if wrong != nil {
			err = fmt.Errorf("%s: %w", FileCheckpoint, wrong)
		}
		return t
	}
	c = &train.Checkpoint{Round: number(metaRound), Names: first.Names, Outer: make([][]*tensor.Tensor, len(first.Outer))}
	for i, name := range tensorNames(first) {
		t := read(name, first.Tensors()[i])
		if k := i / len(first.Names); k == 0 {
			c.Params = append(c.Params, t)
		} else {
			c.Outer[k-1] = append(c.Outer[k-1], t)
		}
	}
	if steered {
		v.since = number(metaSince)
		for i, n := range first.Names {
			v.sum[i] = read(variatePrefix+n, first.Params[i])
		}
	}
	return c, v, err
}

// readRounds gives the records of the rounds before a number to a function. It cuts the rest off the file: records of
// rounds that no checkpoint has, and a line that was not written to its end.
func readRounds(dir string, before uint32, to func(Record)) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, FileRounds), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) && before == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines, kept := bufio.NewReader(f), int64(0)
	for round := range before {
		var r Record
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err == nil && r.Round != round {
			err = fmt.Errorf("the line is of round %d", r.Round)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: round %d: %w", rundir.ErrDamaged, f.Name(), round, err)
		}
		to(r)
		kept += int64(len(line))
	}
	return f.Truncate(kept)
}

// appendRound adds a record to the file.
func appendRound(dir string, r Record) error {
	return rundir.AppendRecords(&rundir.OutDir{Path: dir}, FileRounds, []Record{r})
}
