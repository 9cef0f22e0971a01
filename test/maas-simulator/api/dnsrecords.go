// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func dnsRecordsResource() resource {
	return resource{name: "dnsresourcerecords", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			fits, err := c.dnsFilter()
			if err != nil {
				return nil, err
			}
			kind := strings.ToUpper(c.form.Get("rrtype"))
			out := []any{}
			for _, r := range c.DB.DNSRecords.All() {
				if fits(r.Name, r.DomainID) && (kind == "" || kind == r.Type) {
					out = append(out, c.print.DNSRecord(r))
				}
			}
			return out, nil
		}},
		"POST": {write: createRecord},
	}}
}

var recordTypes = []string{"SSHFP", "CNAME", "SRV", "TXT", "NS", "MX"}

func createRecord(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	f := problem.Fields{}
	name, domain, err := c.dnsName(f)
	if err != nil {
		return nil, err
	}
	kind, data := strings.ToUpper(c.form.Get("rrtype")), c.form.Get("rrdata")
	if !slices.Contains(recordTypes, kind) {
		f.Add("rrtype", "%s is not one of %s.", kind, strings.Join(recordTypes, " "))
	}
	if data == "" {
		f.Add("rrdata", "This field is required.")
	}
	ttl, _ := c.ttl("ttl", f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	r := c.dnsByName(name, domain.ID, -1)
	if r == nil {
		r = &inventory.DNSResource{ID: c.DB.Next("dnsresources"), Name: name, DomainID: domain.ID}
		c.DB.DNSResources.Put(r)
	}
	if kind == "CNAME" && len(r.IPs) > 0 {
		return nil, problem.Field("__all__", "CNAME records for a name cannot coexist with non-CNAME records.")
	}
	record := &inventory.DNSRecord{ID: c.DB.Next("dnsrecords"), Name: name, DomainID: domain.ID, TTL: ttl, Type: kind, RRData: data}
	c.DB.DNSRecords.Put(record)
	return c.print.DNSRecord(record), nil
}

func dnsRecordResource() resource {
	find := func(c *call) *inventory.DNSRecord {
		id, err := strconv.Atoi(c.path[0])
		if err != nil {
			return nil
		}
		return c.DB.DNSRecords.Get(id)
	}
	return resource{name: "dnsresourcerecord", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			r := find(c)
			if r == nil {
				return nil, problem.NotFound("DNSData")
			}
			return c.print.DNSRecord(r), nil
		}},
		"DELETE": {write: func(c *call) (any, error) {
			r := find(c)
			if r == nil {
				return nil, problem.NotFound("DNSData")
			}
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			c.DB.DNSRecords.Delete(r.ID)
			if left := c.dnsByName(r.Name, r.DomainID, -1); left != nil && len(left.IPs) == 0 && len(c.recordsOf(r.Name, r.DomainID)) == 0 {
				c.DB.DNSResources.Delete(left.ID)
			}
			return noContent, nil
		}},
	}}
}

// recordsOf returns the records of a name other than its addresses.
func (c *call) recordsOf(name string, domain int) []*inventory.DNSRecord {
	return slices.DeleteFunc(slices.Clone(c.DB.DNSRecords.All()), func(r *inventory.DNSRecord) bool { return r.Name != name || r.DomainID != domain })
}
