module example.com/shop/service

go 1.24
