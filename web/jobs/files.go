package jobs

import (
	"fmt"
	"net/http"
	"path"
	"strconv"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/answer"
)

func (a *API) files(r *http.Request) (any, error) {
	files, err := a.Runs.Files(r.Context(), r.PathValue("id"))
	return api.Files{Files: answer.Slice(files)}, err
}

// file sends a file of a run, or the parts of it that are asked for. Nothing in it is taken for a page of this server.
func (a *API) file(w http.ResponseWriter, r *http.Request) error {
	f, about, err := a.Runs.Open(r.Context(), r.PathValue("id"), r.PathValue("name"))
	if err != nil {
		return err
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", answer.TypeOfFile(about.Name))
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", path.Base(about.Name)))
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+strconv.FormatInt(about.Modified.UnixNano(), 36)+"-"+strconv.FormatInt(about.Bytes, 36)+`"`)
	http.ServeContent(answer.PerWrite(w, a.Timeout), r, "", about.Modified, f)
	return nil
}
