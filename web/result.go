package web

import (
	"bytes"
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
)

// resultPrefix begins the identifiers of files of results. No file of examples has one: theirs are digests.
const resultPrefix = "file-results-"

// resultID is the file of what a job measured.
func resultID(job string) string { return resultPrefix + strings.TrimPrefix(job, tuningID) }

// result is the file of what a job measured, round by round, in the columns that OpenAI's has. It is made of the run's
// records when it is asked for; an error is ErrNotFound where there is no such job, or none that ended.
func (s *Server) result(r *http.Request, id string) (text []byte, about api.FileObject, err error) {
	run, ok := strings.CutPrefix(id, resultPrefix)
	if !ok {
		return nil, about, ErrNotFound
	}
	asked, h, err := s.tuningHistory(r, tuningID+run)
	if err != nil {
		return nil, about, ErrNotFound
	}
	job := tuningJob(h.Job, asked)
	if len(job.ResultFiles) == 0 {
		return nil, about, ErrNotFound
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
		Filename: "step_metrics.csv", Purpose: purposeResults, Status: "processed"}, nil
}

// results lists the files of results, the latest first.
func (s *Server) results(r *http.Request) (files []api.FileObject, err error) {
	if s.Tuner == nil {
		return nil, nil
	}
	all, err := s.Runs.List(r.Context())
	for _, run := range all {
		if strings.HasPrefix(run.ID, tuningID) {
			if _, about, wrong := s.result(r, resultID(run.ID)); wrong == nil {
				files = append(files, about)
			}
		}
	}
	return files, err
}

// opened is a file of examples or of results.
func (s *Server) opened(r *http.Request, id string) (f io.ReadSeekCloser, about api.FileObject, err error) {
	if text, about, err := s.result(r, id); err == nil {
		return closed{bytes.NewReader(text)}, about, nil
	}
	if s.Files == nil {
		return nil, about, ErrNotFound
	}
	return s.Files.Open(id)
}

// closed closes nothing.
type closed struct{ io.ReadSeeker }

// Close implements io.Closer.
func (closed) Close() error { return nil }
