// Package examples is the part of the API that keeps the files of examples that models are tuned with, in OpenAI's
// form. It lists the files of results of fine-tuning jobs, too. source.Files stores the files and checks their lines.
package examples

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/finetune"
	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/source"
)

// API answers about the files of a server.
type API struct {
	Files   source.Files // nil: none are kept
	Tunings *finetune.API
	Timeout time.Duration // of a write of a file
}

// Routes are the operations of files.
func (a *API) Routes() []route.Route {
	return []route.Route{
		{Method: "POST", Path: "/v1/files", Scope: access.Submit,
			Summary: "Keep a file of examples, read line by line; OpenAI's form", Answer: api.FileObject{},
			Timeout: route.PlanTimeout, Upload: maxUpload, Handle: a.keep},
		{Method: "GET", Path: "/v1/files", Scope: access.Read,
			Summary: "The files of examples, the latest first; OpenAI's form", Answer: api.FileObjects{},
			Handle: a.list,
			Params: append([]request.Param{
				request.Query("purpose", "string", "only those kept for fine-tune, or fine-tune-results"),
				request.Query("order", "string", "asc: the earliest first")}, request.ListParams...)},
		{Method: "GET", Path: "/v1/files/{file}", Scope: access.Read, Summary: "A file of examples; OpenAI's form",
			Answer: api.FileObject{}, Handle: a.one},
		{Method: "GET", Path: "/v1/files/{file}/content", Scope: access.Read,
			Summary: "The lines of a file of examples, or the metrics of a job", Kinds: []string{answer.JSONL},
			Stream: a.content},
		{Method: "DELETE", Path: "/v1/files/{file}", Scope: access.Submit,
			Summary: "Remove a file of examples; OpenAI's form", Answer: api.FileDeleted{}, Handle: a.remove},
	}
}

// purposeExamples is the purpose of a file of examples.
const purposeExamples = "fine-tune"

// Limits of files of examples.
const (
	maxUpload  = 100<<20 + 1<<16 // a file, and the form around it
	formMemory = 1 << 20         // of a form; the rest waits on the disk
)

// noFile says of an unknown file what it is.
func noFile(err error) error {
	if errors.Is(err, failure.ErrNotFound) {
		return &failure.Error{Status: http.StatusNotFound, Code: "NOT_FOUND", Detail: "there is no such file",
			Fix: "GET /v1/files lists what there is", Param: "file"}
	}
	return err
}

// keep reads the form of an upload.
func (a *API) keep(r *http.Request) (any, error) {
	if a.Files == nil {
		return nil, failure.ErrSubmissionOff
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		return nil, failure.New(http.StatusUnsupportedMediaType, "BODY_NOT_FORM", "the body is not multipart/form-data",
			"send a form with file and purpose")
	}
	err := r.ParseMultipartForm(formMemory)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &failure.Error{Status: http.StatusRequestEntityTooLarge, Code: "FILE_TOO_LARGE",
			Detail: fmt.Sprintf("a file has at most %d MiB", maxUpload>>20), Fix: "send fewer examples", Param: "file"}
	}
	if err != nil {
		return nil, failure.New(http.StatusBadRequest, "BODY_INVALID", "the form cannot be read",
			"send multipart/form-data with file and purpose")
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }() // what is left is the system's to clear
	if purpose := r.MultipartForm.Value["purpose"]; !slices.Equal(purpose, []string{purposeExamples}) {
		return nil, failure.InvalidValue("purpose", fmt.Sprintf("purpose is %.60q", purpose),
			"give one, fine-tune: files are kept for nothing else")
	}
	files := r.MultipartForm.File["file"]
	if len(files) != 1 {
		return nil, failure.InvalidValue("file", fmt.Sprintf("the form has %d files", len(files)), "send one, as file")
	}
	f, err := files[0].Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kept, err := a.Files.Keep(files[0].Filename, f)
	var line *openai.ExampleError
	if errors.As(err, &line) {
		return nil, &failure.Error{Status: http.StatusBadRequest, Code: "INVALID_FILE",
			Detail: fmt.Sprintf("line %d: %s", line.Line, line.Why), Fix: line.Fix, Param: "file"}
	}
	return kept, err
}

func (a *API) list(r *http.Request) (any, error) {
	l := api.FileObjects{Object: "list", Data: []api.FileObject{}}
	purpose := r.URL.Query().Get("purpose")
	var all []api.FileObject
	var err error
	if a.Files != nil && (purpose == "" || purpose == purposeExamples) {
		all, err = a.Files.List()
	}
	if err == nil && (purpose == "" || purpose == finetune.PurposeResults) {
		var more []api.FileObject
		more, err = a.Tunings.Results(r.Context())
		all = append(slices.Clone(all), more...)
		slices.SortStableFunc(all, func(a, b api.FileObject) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	}
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Get("order") == "asc" {
		slices.Reverse(all)
	}
	l.Data, l.HasMore, err = request.After(r, all, request.MaxListed, func(f api.FileObject) string { return f.ID })
	return l, err
}

func (a *API) one(r *http.Request) (any, error) {
	f, about, err := a.open(r, r.PathValue("file"))
	if err != nil {
		return nil, noFile(err)
	}
	return about, f.Close()
}

func (a *API) content(w http.ResponseWriter, r *http.Request) error {
	f, about, err := a.open(r, r.PathValue("file"))
	if err != nil {
		return noFile(err)
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", answer.JSONL)
	if about.Purpose == finetune.PurposeResults {
		h.Set("Content-Type", answer.CSV+"; charset=utf-8")
	}
	h.Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(about.Filename))
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+about.ID+`"`)
	http.ServeContent(answer.PerWrite(w, a.Timeout), r, "", time.Unix(about.CreatedAt, 0), f)
	return nil
}

func (a *API) remove(r *http.Request) (any, error) {
	if a.Files == nil {
		return nil, failure.ErrSubmissionOff
	}
	id := r.PathValue("file")
	if _, _, err := a.Tunings.Result(r.Context(), id); err == nil {
		return nil, &failure.Error{Status: http.StatusConflict, Code: "FILE_IN_USE",
			Detail: "the file is made of the records of a job", Fix: "it takes no room of its own: leave it", Param: "file"}
	}
	used, err := a.Tunings.Unfinished(r.Context(), func(asked api.FineTuningRequest) bool {
		return asked.TrainingFile == id || asked.ValidationFile == id
	})
	if err != nil {
		return nil, err
	}
	if used != "" {
		return nil, &failure.Error{Status: http.StatusConflict, Code: "FILE_IN_USE",
			Detail: "the job " + used + " trains on the file", Fix: "wait for its end, or cancel it", Param: "file"}
	}
	if err := a.Files.Remove(id); err != nil {
		return nil, noFile(err)
	}
	return api.FileDeleted{ID: id, Object: "file", Deleted: true}, nil
}

// open is a file of examples or of results.
func (a *API) open(r *http.Request, id string) (f io.ReadSeekCloser, about api.FileObject, err error) {
	if text, about, err := a.Tunings.Result(r.Context(), id); err == nil {
		return noCloser{bytes.NewReader(text)}, about, nil
	}
	if a.Files == nil {
		return nil, about, failure.ErrNotFound
	}
	return a.Files.Open(id)
}

// noCloser closes nothing.
type noCloser struct{ io.ReadSeeker }

// Close implements io.Closer.
func (noCloser) Close() error { return nil }
