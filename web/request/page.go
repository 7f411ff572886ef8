package request

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/starling-network/starling/web/failure"
)

// PageParams are the parameters that PageOf reads.
var PageParams = []Param{{"limit", "integer", "entries of a page, 1 to 1000; 100 unless given"},
	{"after", "string", "cursor of a page"}}

// A Page is the part of a list that a request asks for.
type Page struct {
	from, limit int
}

// PageOf reads the cursor and the size of a page of a list with total entries. The cursor is the index at which the
// page begins, encoded so that clients do not compute it.
func PageOf(r *http.Request, total int) (Page, error) {
	limit, err := Int(r, "limit", 100, 1, 1000)
	if err != nil {
		return Page{}, err
	}
	from, err := Cursor(r, 0)
	if err != nil {
		return Page{}, err
	}
	p := Page{from: total}
	if from < int64(total) {
		p.from = int(from)
	}
	p.limit = min(int(limit), total-p.from)
	return p, nil
}

// Cut returns the page of a list, and the cursor of the next one.
func Cut[T any](list []T, p Page) (part []T, more bool, after string) {
	end := p.from + p.limit
	part = list[p.from:end:end]
	if part == nil {
		part = []T{}
	}
	if end < len(list) {
		return part, true, EncodeCursor(int64(end))
	}
	return part, false, ""
}

// Cursor reads the number, at least least, that the parameter after encodes; 0 where it is missing.
func Cursor(r *http.Request, least int64) (int64, error) {
	after := r.URL.Query().Get("after")
	if after == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(after)
	n, wrong := strconv.ParseInt(string(text), 10, 64)
	if err != nil || wrong != nil || n < least {
		return 0, BadParam("after", after, "the cursor of a page")
	}
	return n, nil
}

// EncodeCursor is the cursor that Cursor reads as n.
func EncodeCursor(n int64) string {
	return base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, n, 10))
}

// ListParams are the parameters that After reads.
var ListParams = []Param{{"limit", "integer", "entries of a page, 1 to 10000"},
	{"after", "string", "identifier of the last entry of the page before"}}

// MaxListed is the most entries of a page of After.
const MaxListed = 10_000

// After returns the page of a list in OpenAI's form: at most the asked number of entries, otherwise unless given, that
// follow the one whose identifier is the parameter after.
func After[T any](r *http.Request, all []T, otherwise int64, id func(T) string) (page []T, more bool, err error) {
	limit, err := Int(r, "limit", otherwise, 1, MaxListed)
	if err != nil {
		return nil, false, err
	}
	if after := r.URL.Query().Get("after"); after != "" {
		at := slices.IndexFunc(all, func(x T) bool { return id(x) == after })
		if at < 0 {
			return nil, false, failure.InvalidValue("after", fmt.Sprintf("after=%.80q is not in the list", after),
				"give the id of the last entry of the page before")
		}
		all = all[at+1:]
	}
	n := min(int(limit), len(all))
	if page = all[:n]; page == nil {
		page = []T{}
	}
	return page, n < len(all), nil
}
