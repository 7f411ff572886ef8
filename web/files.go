package web

import (
	"fmt"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/starling-network/starling/client/api"
)

func (s *Server) files(r *http.Request) (any, error) {
	files, err := s.Runs.Files(r.Context(), r.PathValue("id"))
	return api.Files{Files: some(files)}, err
}

// file sends a file of a run, or the parts of it that are asked for. Nothing in it is taken for a page of this server.
func (s *Server) file(w http.ResponseWriter, r *http.Request) error {
	f, about, err := s.Runs.Open(r.Context(), r.PathValue("id"), r.PathValue("name"))
	if err != nil {
		return err
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", contentType(about.Name))
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", path.Base(about.Name)))
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+strconv.FormatInt(about.Modified.UnixNano(), 36)+"-"+strconv.FormatInt(about.Bytes, 36)+`"`)
	http.ServeContent(lasting{w, http.NewResponseController(w), s.Limits.Write}, r, "", about.Modified, f)
	return nil
}

// Types of content.
const (
	csvText   = "text/csv"
	plainText = "text/plain"
	htmlText  = "text/html"
	jsonText  = "application/json"
	jsonLines = "application/jsonl"
	octets    = "application/octet-stream"
)

// fileKinds are the types of files of a run.
var fileKinds = []string{jsonText, plainText, htmlText, octets}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".json":
		return jsonText
	case ".jsonl", ".log", ".md", ".yaml":
		return plainText + "; charset=utf-8"
	case ".html":
		return htmlText + "; charset=utf-8"
	}
	return octets
}

// lasting gives every write a time of its own, so that a long file may take its time, and its reader may not stop.
type lasting struct {
	http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
}

func (l lasting) Write(b []byte) (int, error) {
	_ = l.rc.SetWriteDeadline(time.Now().Add(l.patience)) // a recorder has none
	return l.ResponseWriter.Write(b)
}
