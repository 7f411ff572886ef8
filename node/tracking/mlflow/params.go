package mlflow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/starling-network/starling/client/job/spec"
)

// Params are the settings of a job by their keys, such as training.learning_rate, as text. Zero values, and settings
// of one machine only, are left out.
func Params(s spec.Spec) map[string]string {
	out := map[string]string{}
	settings("", reflect.ValueOf(s), out)
	return out
}

func settings(at string, v reflect.Value, out map[string]string) {
	switch {
	case v.Kind() == reflect.Pointer:
		settings(at, v.Elem(), out)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[spec.Tokenizer]():
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("job"), ",")
			if x := v.Field(i); !x.IsZero() && !strings.Contains(options, "local") {
				settings(strings.TrimPrefix(at+"."+name, "."), x, out)
			}
		}
	case v.Kind() == reflect.Map:
		for _, k := range v.MapKeys() {
			settings(at+"."+k.String(), v.MapIndex(k), out)
		}
	case v.Kind() == reflect.Slice:
		text, err := json.Marshal(v.Interface())
		if err != nil {
			text = fmt.Append(nil, v)
		}
		out[at] = string(text)
	default:
		out[at] = fmt.Sprint(v.Interface())
	}
}
