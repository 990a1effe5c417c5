package evidence

func Report(r Record) ([]byte, error) { return []byte("did not pass"), nil }
