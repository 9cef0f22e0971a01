// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"encoding/json"
	"io"
	"reflect"
)

const (
	// maxMachinesBody is the maximum size of a list of machines, in bytes. A machine with few interfaces takes about 15
	// KB, one with many up to 60 KB.
	maxMachinesBody = 128 << 20
	// maxListBody is the maximum size of any other list, and maxObjectBody the maximum size of any other answer, in
	// bytes.
	maxListBody   = 16 << 20
	maxObjectBody = 4 << 20
	// maxItems is the maximum number of objects in a list. An empty object takes a hundred times as much memory as in the
	// answer.
	maxItems = 50_000
)

// maxBody returns the maximum size of an answer, in bytes. Answers are limited because a tenant may choose the
// endpoint.
func (c *Client) maxBody(out any) int64 {
	bound := int64(maxObjectBody)
	if _, machines := out.(*[]Machine); machines {
		bound = maxMachinesBody
	} else if out != nil && reflect.TypeOf(out).Elem().Kind() == reflect.Slice {
		bound = maxListBody
	}
	return cmp.Or(c.cfg.MaxBody, bound)
}

type tooLargeError struct{}

func (*tooLargeError) Error() string { return "the answer of MAAS is larger than the client allows" }

// boundedReader fails if there is more data than its limit. The reader of io.LimitReader would return io.EOF.
type boundedReader struct {
	reader io.Reader
	left   int64
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, &tooLargeError{}
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.reader.Read(p)
	r.left -= int64(n)
	return n, err
}

// kindOf returns the kind of a value by its first token, in the words of the JSON decoder's errors.
func kindOf(start json.Token) string {
	switch start.(type) {
	case json.Delim:
		return "object"
	case string:
		return "string"
	case bool:
		return "bool"
	}
	return "number"
}

// decode decodes JSON. It decodes a list object by object, so that the complete text is never in memory.
func decode(body io.Reader, out any) error {
	decoder := json.NewDecoder(body)
	list := reflect.ValueOf(out).Elem()
	if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
		return decoder.Decode(out)
	}
	start, err := decoder.Token()
	if err != nil {
		return err
	}
	if start == nil {
		return nil // A null list has no objects.
	}
	if start != json.Delim('[') {
		return &json.UnmarshalTypeError{Value: kindOf(start), Type: list.Type()}
	}
	list.Set(reflect.MakeSlice(list.Type(), 0, 0))
	for decoder.More() {
		if list.Len() == maxItems {
			return &tooLargeError{}
		}
		item := reflect.New(list.Type().Elem())
		if err := decoder.Decode(item.Interface()); err != nil {
			return err
		}
		list.Set(reflect.Append(list, item.Elem()))
	}
	_, err = decoder.Token()
	return err
}
