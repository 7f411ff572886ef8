// Package body reads the JSON of clients of the Tinker API, of which each version sends further keys. It knows no
// request.
package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/starling-network/starling/web/failure"
)

// maxValues bounds the objects and lists of a body, each of which takes many times its bytes.
const maxValues = 1 << 15

// Decode reads one JSON object. A key that dst lacks is refused, unless its value is empty: clients of other versions
// send further keys with their defaults.
func Decode(body []byte, dst any) error {
	if n := bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("[")); n > maxValues {
		return failure.New(http.StatusUnprocessableEntity, "BODY_INVALID",
			fmt.Sprintf("the body has %d objects and lists; a request has at most %d", n, maxValues), "send fewer sequences")
	}
	err := strict(body, dst)
	for range maxFurther {
		key, unknown := strings.CutPrefix(fmt.Sprint(err), unknownField)
		if !unknown {
			break
		}
		var all any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if d.Decode(&all) != nil || !dropped(all, strings.Trim(key, `"`)) {
			break
		}
		if body, err = json.Marshal(all); err == nil {
			err = strict(body, dst)
		}
	}
	if err != nil {
		return failure.New(http.StatusUnprocessableEntity, "BODY_INVALID", "the body is not what this address takes: "+
			strings.TrimPrefix(err.Error(), "json: "), "send the JSON of the Tinker API; docs/serving.md lists the keys")
	}
	return nil
}

const (
	maxFurther   = 8 // keys
	unknownField = "json: unknown field "
)

func strict(body []byte, dst any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// dropped removes a key with an empty value from all objects, and reports whether there was one.
func dropped(value any, key string) (found bool) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			found = dropped(each, key) || found
		}
	case map[string]any:
		for name, each := range v {
			if name == key && empty(each) {
				delete(v, name)
				found = true
			} else {
				found = dropped(each, key) || found
			}
		}
	}
	return found
}

// empty reports null, false, 0, and a text, list or object without anything.
func empty(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case json.Number:
		x, err := v.Float64()
		return err == nil && x == 0
	}
	return value == nil || value == false || value == ""
}

// Read reads the body of a request, whose size is bounded.
func Read(r *http.Request) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" || strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		return nil, failure.New(http.StatusUnsupportedMediaType, "FORM_UNSUPPORTED",
			"the server reads JSON that is not compressed", "use a client of the JSON form of the interface")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, failure.Of(err)
	}
	return body, nil
}
