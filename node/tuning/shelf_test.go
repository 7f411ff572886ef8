package tuning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/source"
)

// noRuns is a source.Runs that is never asked.
type noRuns struct{ source.Runs }

const talk = `{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}` + "\n"

// upload is the form that OpenAI's clients send.
func upload(t *testing.T, purpose, name, text string) *http.Request {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, err := form.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, text) // to memory
	_ = form.WriteField("purpose", purpose)
	_ = form.Close()
	r := httptest.NewRequest("POST", "http://localhost/v1/files", &b)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// ask sends a request, and reads an answer of that status.
func ask(t *testing.T, h http.Handler, r *http.Request, status int, into any) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text := w.Body.String()
	if w.Code != status {
		t.Fatalf("%s %s: %d, wanted %d: %s", r.Method, r.URL, w.Code, status, text)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	return text
}

func get(path string) *http.Request { return httptest.NewRequest("GET", "http://localhost"+path, nil) }

func TestFiles(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, dirShelf, "upload-1"), 0o755); err != nil { // as a server left it that ended
		t.Fatal(err)
	}
	shelf := NewExampleStore(data)
	s := web.New(web.Config{Runs: noRuns{}, Files: shelf})
	var f, again api.FileObject
	ask(t, s, upload(t, "fine-tune", "talk.jsonl", talk), http.StatusOK, &f)
	if f.Object != "file" || f.Filename != "talk.jsonl" || f.Bytes != int64(len(talk)) || f.Purpose != "fine-tune" ||
		f.Status != "processed" || f.CreatedAt == 0 {
		t.Errorf("%+v", f)
	}
	if ask(t, s, upload(t, "fine-tune", "other.jsonl", talk), http.StatusOK, &again); again != f {
		t.Errorf("the same bytes are %+v and %+v", f, again)
	}
	if ask(t, s, get("/v1/files/"+f.ID), http.StatusOK, &again); again != f {
		t.Errorf("%+v", again)
	}
	if text := ask(t, s, get("/v1/files/"+f.ID+"/content"), http.StatusOK, nil); text != talk {
		t.Errorf("%q", text)
	}
	for n := range 3 {
		ask(t, s, upload(t, "fine-tune", "more.jsonl", strings.Repeat(talk, n+2)), http.StatusOK, nil)
	}
	var first, second api.FileObjects
	ask(t, s, get("/v1/files?limit=3"), http.StatusOK, &first)
	if len(first.Data) != 3 || !first.HasMore {
		t.Fatalf("%+v", first)
	}
	ask(t, s, get("/v1/files?limit=3&after="+first.Data[2].ID), http.StatusOK, &second)
	if len(second.Data) != 1 || second.HasMore {
		t.Errorf("%+v", second)
	}
	var gone api.FileDeleted
	remove := func() *http.Request { return httptest.NewRequest("DELETE", "http://localhost/v1/files/"+f.ID, nil) }
	if ask(t, s, remove(), http.StatusOK, &gone); !gone.Deleted || gone.ID != f.ID {
		t.Errorf("%+v", gone)
	}
	ask(t, s, remove(), http.StatusNotFound, nil)
	ask(t, s, get("/v1/files/"+f.ID+"/content"), http.StatusNotFound, nil)
	entries, err := os.ReadDir(filepath.Join(data, dirShelf))
	if err != nil || len(entries) != 3 {
		t.Errorf("%v %v", entries, err)
	}
}

// A refusal is answered in OpenAI's form, and leaves no file.
func TestFilesRefuse(t *testing.T) {
	data := t.TempDir()
	s := web.New(web.Config{Runs: noRuns{}, Files: NewExampleStore(data)})
	json := httptest.NewRequest("POST", "http://localhost/v1/files", strings.NewReader("{}"))
	json.Header.Set("Content-Type", "application/json")
	half := upload(t, "fine-tune", "a", talk)
	half.Body = io.NopCloser(io.LimitReader(half.Body, half.ContentLength-20))
	foreign := upload(t, "fine-tune", "a", talk)
	foreign.Header.Set("Origin", "http://elsewhere.example")
	for name, c := range map[string]struct {
		r           *http.Request
		status      int
		code, param string
	}{
		"no form":        {json, http.StatusUnsupportedMediaType, "body_not_form", ""},
		"half a form":    {half, http.StatusBadRequest, "body_invalid", ""},
		"purpose":        {upload(t, "assistants", "a", talk), http.StatusBadRequest, "invalid_value", "purpose"},
		"line":           {upload(t, "fine-tune", "a", talk+"x"), http.StatusBadRequest, "invalid_file", "file"},
		"empty":          {upload(t, "fine-tune", "a", ""), http.StatusBadRequest, "invalid_file", "file"},
		"cross-site":     {foreign, http.StatusForbidden, "cross_site", ""},
		"unknown":        {get("/v1/files/file-1"), http.StatusNotFound, "not_found", "file"},
		"a path":         {get("/v1/files/..%2Fx"), http.StatusNotFound, "not_found", "file"},
		"a foreign page": {get("/v1/files?after=file-2"), http.StatusBadRequest, "invalid_value", "after"},
		"a limit":        {get("/v1/files?limit=0"), http.StatusBadRequest, "parameter_invalid", ""},
	} {
		var e api.OpenAIError
		ask(t, s, c.r, c.status, &e)
		param := ""
		if e.Error.Param != nil {
			param = *e.Error.Param
		}
		if e.Error.Code == nil || *e.Error.Code != c.code || param != c.param || e.Error.Type != "invalid_request_error" ||
			e.Error.Message == "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if left, err := filepath.Glob(filepath.Join(data, dirShelf, "*")); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
	readOnly := web.New(web.Config{Runs: noRuns{}})
	ask(t, readOnly, upload(t, "fine-tune", "a", talk), http.StatusNotImplemented, nil)
	ask(t, readOnly, get("/v1/files"), http.StatusOK, nil)
	ask(t, readOnly, get("/v1/files/"+fmt.Sprintf("file-%024d", 1)), http.StatusNotFound, nil)
}

// Files are for those whose token may look, and may be kept and removed by those whose token may submit.
func TestFilesNeedTokens(t *testing.T) {
	const reader, writer = "aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb"
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(reader+" read\n"+writer+" read,submit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	s := web.New(web.Config{Runs: noRuns{}, Files: NewExampleStore(t.TempDir()), Tokens: tokens})
	by := func(r *http.Request, token string) *http.Request {
		r.Header.Set("Authorization", "Bearer "+token)
		return r
	}
	ask(t, s, get("/v1/files"), http.StatusUnauthorized, new(api.OpenAIError))
	ask(t, s, by(get("/v1/files"), reader), http.StatusOK, nil)
	ask(t, s, by(upload(t, "fine-tune", "a", talk), reader), http.StatusForbidden, new(api.OpenAIError))
	ask(t, s, by(upload(t, "fine-tune", "a", talk), writer), http.StatusOK, nil)
}
