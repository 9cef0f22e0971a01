// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"encoding/json"
	"io"
	"reflect"
)

const (
	// maxMachinesBody bounds a list of machines in bytes. One with few interfaces takes some 15 KB, one with many up to
	// 60 KB.
	maxMachinesBody = 128 << 20
	// maxListBody bounds another list, and maxObjectBody anything else, in bytes.
	maxListBody   = 16 << 20
	maxObjectBody = 4 << 20
	// maxItems bounds the objects of a list: in memory an empty one takes a hundred times what it takes in an answer.
	maxItems = 50_000
)

// maxBody is the bound of an answer in bytes. The endpoint may be a tenant's.
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

// boundedReader fails, unlike io.LimitReader, when there is more than its bound.
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

// kindOf names a value by its first token, as the JSON decoder does.
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

// decode reads JSON. A list is read object by object, so that its text is never in memory at once.
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
		return nil // A list that is null has no objects.
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
