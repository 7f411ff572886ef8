package finetune

import (
	"bytes"
	"context"
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
)

// PurposeResults is the purpose of a file of results.
const PurposeResults = "fine-tune-results"

// resultPrefix begins the identifiers of files of results. No file of examples has one: theirs are digests.
const resultPrefix = "file-results-"

// resultID is the identifier of the file with the measurements of a job.
func resultID(job string) string { return resultPrefix + strings.TrimPrefix(job, idPrefix) }

// Result is the file with the measurements of a job, round by round, in the columns that OpenAI's has. It is made
// of the run's records when it is asked for; an error is failure.ErrNotFound if there is no such job, or it has not
// ended.
func (a *API) Result(ctx context.Context, id string) (text []byte, about api.FileObject, err error) {
	run, ok := strings.CutPrefix(id, resultPrefix)
	if !ok {
		return nil, about, failure.ErrNotFound
	}
	asked, h, err := a.history(ctx, idPrefix+run)
	if err != nil {
		return nil, about, failure.ErrNotFound
	}
	job := jobOf(h.Job, asked)
	if len(job.ResultFiles) == 0 {
		return nil, about, failure.ErrNotFound
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	lines := [][]string{{"step", "train_loss", "valid_loss"}}
	rounds, _ := progress(h)
	for _, m := range rounds {
		line := []string{strconv.Itoa(m.Step), strconv.FormatFloat(m.TrainLoss, 'g', -1, 64), ""}
		if m.ValidLoss != nil {
			line[2] = strconv.FormatFloat(*m.ValidLoss, 'g', -1, 64)
		}
		lines = append(lines, line)
	}
	if err := w.WriteAll(lines); err != nil {
		return nil, about, err
	}
	return b.Bytes(), api.FileObject{ID: id, Object: "file", Bytes: int64(b.Len()), CreatedAt: *job.FinishedAt,
		Filename: "step_metrics.csv", Purpose: PurposeResults, Status: "processed"}, nil
}

// Results lists the files of results, the latest first.
func (a *API) Results(ctx context.Context) (files []api.FileObject, err error) {
	if a.Tuner == nil {
		return nil, nil
	}
	all, err := a.Runs.List(ctx)
	for _, run := range all {
		if strings.HasPrefix(run.ID, idPrefix) {
			if _, about, wrong := a.Result(ctx, resultID(run.ID)); wrong == nil {
				files = append(files, about)
			}
		}
	}
	return files, err
}
