package web

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/openai"
)

// Limits of files of examples.
const (
	maxUpload  = 100<<20 + 1<<16 // a file, and the form around it
	formMemory = 1 << 20         // of a form; the rest waits on the disk
	maxListed  = 10_000
)

// Purposes of files.
const (
	purposeExamples = "fine-tune"
	purposeResults  = "fine-tune-results"
)

var errNoFiles = fail(http.StatusNotImplemented, "SUBMISSION_OFF", "this server shows runs and starts none",
	"run starling web over a folder of runs, without --read-only")

// wrongParam refuses a parameter in OpenAI's form.
func wrongParam(param, detail, fix string) *Failure {
	return &Failure{Status: http.StatusBadRequest, Code: "INVALID_VALUE", Detail: detail, Fix: fix, Param: param}
}

// noFile says of an unknown file what it is.
func noFile(err error) error {
	if errors.Is(err, ErrNotFound) {
		return &Failure{Status: http.StatusNotFound, Code: "NOT_FOUND", Detail: "there is no such file",
			Fix: "GET /v1/files lists what there is", Param: "file"}
	}
	return err
}

// keepFile reads the form of an upload.
func (s *Server) keepFile(r *http.Request) (any, error) {
	if s.Files == nil {
		return nil, errNoFiles
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		return nil, fail(http.StatusUnsupportedMediaType, "BODY_NOT_FORM", "the body is not multipart/form-data",
			"send a form with file and purpose")
	}
	err := r.ParseMultipartForm(formMemory)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &Failure{Status: http.StatusRequestEntityTooLarge, Code: "FILE_TOO_LARGE",
			Detail: fmt.Sprintf("a file has at most %d MiB", maxUpload>>20), Fix: "send fewer examples", Param: "file"}
	}
	if err != nil {
		return nil, fail(http.StatusBadRequest, "BODY_INVALID", "the form cannot be read",
			"send multipart/form-data with file and purpose")
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }() // what is left is the system's to clear
	if purpose := r.MultipartForm.Value["purpose"]; !slices.Equal(purpose, []string{purposeExamples}) {
		return nil, wrongParam("purpose", fmt.Sprintf("purpose is %.60q", purpose),
			"give one, fine-tune: files are kept for nothing else")
	}
	files := r.MultipartForm.File["file"]
	if len(files) != 1 {
		return nil, wrongParam("file", fmt.Sprintf("the form has %d files", len(files)), "send one, as file")
	}
	f, err := files[0].Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kept, err := s.Files.Keep(files[0].Filename, f)
	var line *openai.ExampleError
	if errors.As(err, &line) {
		return nil, &Failure{Status: http.StatusBadRequest, Code: "INVALID_FILE",
			Detail: fmt.Sprintf("line %d: %s", line.Line, line.Why), Fix: line.Fix, Param: "file"}
	}
	return kept, err
}

func (s *Server) listFiles(r *http.Request) (any, error) {
	l := api.FileObjects{Object: "list", Data: []api.FileObject{}}
	purpose := r.URL.Query().Get("purpose")
	var all []api.FileObject
	var err error
	if s.Files != nil && (purpose == "" || purpose == purposeExamples) {
		all, err = s.Files.List()
	}
	if err == nil && (purpose == "" || purpose == purposeResults) {
		var more []api.FileObject
		more, err = s.results(r)
		all = append(slices.Clone(all), more...)
		slices.SortStableFunc(all, func(a, b api.FileObject) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	}
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Get("order") == "asc" {
		slices.Reverse(all)
	}
	l.Data, l.HasMore, err = following(r, all, maxListed, func(f api.FileObject) string { return f.ID })
	return l, err
}

// following returns the page of a list in OpenAI's form: the entries that follow the one that the parameter after
// names.
func following[T any](r *http.Request, all []T, otherwise int64, id func(T) string) (page []T, more bool, err error) {
	limit, err := whole(r, "limit", otherwise, 1, maxListed)
	if err != nil {
		return nil, false, err
	}
	if after := r.URL.Query().Get("after"); after != "" {
		at := slices.IndexFunc(all, func(x T) bool { return id(x) == after })
		if at < 0 {
			return nil, false, wrongParam("after", fmt.Sprintf("after=%.80q is not in the list", after),
				"give the id of the last entry of the page before")
		}
		all = all[at+1:]
	}
	n := min(int(limit), len(all))
	return some(all[:n]), n < len(all), nil
}

func (s *Server) oneFile(r *http.Request) (any, error) {
	f, about, err := s.opened(r, r.PathValue("file"))
	if err != nil {
		return nil, noFile(err)
	}
	return about, f.Close()
}

func (s *Server) fileContent(w http.ResponseWriter, r *http.Request) error {
	f, about, err := s.opened(r, r.PathValue("file"))
	if err != nil {
		return noFile(err)
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", jsonLines)
	if about.Purpose == purposeResults {
		h.Set("Content-Type", "text/csv; charset=utf-8")
	}
	h.Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(about.Filename))
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+about.ID+`"`)
	http.ServeContent(lasting{w, http.NewResponseController(w), s.Limits.Write}, r, "", time.Unix(about.CreatedAt, 0), f)
	return nil
}

func (s *Server) removeFile(r *http.Request) (any, error) {
	if s.Files == nil {
		return nil, errNoFiles
	}
	id := r.PathValue("file")
	if _, _, err := s.result(r, id); err == nil {
		return nil, &Failure{Status: http.StatusConflict, Code: "FILE_IN_USE",
			Detail: "the file is made of the records of a job", Fix: "it takes no room of its own: leave it", Param: "file"}
	}
	used, err := s.tunes(r, id)
	if err != nil {
		return nil, err
	}
	if used != "" {
		return nil, &Failure{Status: http.StatusConflict, Code: "FILE_IN_USE",
			Detail: "the job " + used + " trains on the file", Fix: "wait for its end, or cancel it", Param: "file"}
	}
	if err := s.Files.Remove(id); err != nil {
		return nil, noFile(err)
	}
	return api.FileDeleted{ID: id, Object: "file", Deleted: true}, nil
}
