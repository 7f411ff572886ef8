package job

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of job files, for editors. It says what keys there are and what each may
// be; what two keys mean for each other is checked by Parse alone.
//
//go:embed schema.json
var Schema []byte
